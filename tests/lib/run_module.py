# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one unittest module and writes what became of each test as JSON: passed, failed [name], skipped [[name, reason]].

Usage: run_module.py MODULE FILE      in the module's folder
"""
import json
import os
import sys
import unittest

sys.path[:0] = [os.getcwd(), os.path.dirname(os.path.abspath(__file__))]


class Result(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.good, self.bad = 0, []

    @staticmethod
    def name(test):
        return str(test).replace('\n', ' ')

    def remember(self, test):
        if self.name(test) not in self.bad:
            self.bad.append(self.name(test))

    def addSuccess(self, test):
        super().addSuccess(test)
        self.good += 1

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.remember(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.remember(test)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.remember(test)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.remember(test)


def main(module, path):
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    skipped = [[Result.name(test), reason] for test, reason in result.skipped]
    with open(path, 'w', encoding='utf-8') as out:
        json.dump({'passed': result.good, 'failed': result.bad, 'skipped': skipped}, out)
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
