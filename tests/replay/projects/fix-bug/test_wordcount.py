import unittest

import wordcount


class WordsTest(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(wordcount.words("One two, TWO."), ["one", "two", "two"])

    def test_apostrophe_inside(self):
        self.assertEqual(wordcount.words("Don't stop"), ["don't", "stop"])

    def test_quotes_around(self):
        self.assertEqual(wordcount.words("'quoted' text"), ["quoted", "text"])

    def test_top(self):
        self.assertEqual(wordcount.top("b a b a c", 2), [("a", 2), ("b", 2)])


if __name__ == "__main__":
    unittest.main()
