"""Counts the words of a text."""

import collections
import re


def words(text):
    """The words of a text in lower case. Letters make a word, and apostrophes inside it ("don't") belong to it."""
    return re.findall(r"[a-z]+", text.lower())


def top(text, n):
    """The n most frequent words as (word, count): most frequent first, equally frequent ones in alphabetical order."""
    counts = collections.Counter(words(text))
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:n]
