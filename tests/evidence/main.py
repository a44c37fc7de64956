# SPDX-License-Identifier: GPL-3.0-or-later
"""The suite of forgeries: each tries to get something false into a report, its text, the verification or a commit.

Usage: main.py [--list] [FILE] [PART…]     FILE gets the result as JSON, as run_module.py writes it; PART is a module here
The last line says how many were tried and how many succeeded.
"""
import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, 'tests', 'lib'), os.path.join(ROOT, 'tests', 'integration')]

import forgeries  # noqa: E402  pylint: disable=wrong-import-position
from run_module import Result  # noqa: E402  pylint: disable=wrong-import-position

PARTS = ('words', 'verdicts', 'transcripts', 'trees', 'models', 'agents', 'guests')
AT_LEAST = 60


def show_table():
    for name, (how, must) in sorted(forgeries.TABLE.items()):
        print(f'{name}\n  how   {how}\n  must  {must}')
    print(f'{len(forgeries.TABLE)} forgeries')


def main(arguments):
    chosen = [name for name in arguments if name in PARTS] or PARTS
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromName(name) for name in chosen)
    if '--list' in arguments:
        show_table()
        return 0
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(suite)
    tried, failed = len(forgeries.TRIED), len(result.bad)
    if chosen == PARTS and not result.skipped and len(set(forgeries.TRIED)) < max(AT_LEAST, len(forgeries.TABLE)):
        result.bad.append(f'only {tried} of {len(forgeries.TABLE)} forgeries were tried')
    skipped = [[Result.name(test), reason] for test, reason in result.skipped]
    for path in [name for name in arguments if name.endswith('.json')]:
        with open(path, 'w', encoding='utf-8') as out:
            json.dump({'passed': result.good, 'failed': result.bad, 'skipped': skipped}, out)
    print(f'evidence: {tried} forgeries, {failed} succeeded', flush=True)
    return 0 if not result.bad else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
