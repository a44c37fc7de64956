# SPDX-License-Identifier: GPL-3.0-or-later
"""The table of forgeries, and what they are made and judged with.

A forgery is a test method with a name, how it is tried, and what must come of it; it succeeded when its test fails."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get('BELLJAR_BUILD', os.path.join(ROOT, 'build'))
FORGE = os.path.join(BUILD, 'tests', 'evidence', 'evidence-forge')
DEADLINE = 60

TABLE = {}  # name: (how, what must come of it)
TRIED = []  # names, as they are begun


def forgery(name, how, must):
    """Makes a test method one forgery of the table."""
    def wrap(method):
        def test(self):
            TRIED.append(name)
            method(self)
        assert name not in TABLE, name
        TABLE[name] = (how, must)
        test.__name__, test.__doc__ = method.__name__, f'{name}: {how}'
        return test
    return wrap


def rows(case, check, table):
    """Makes a forgery of each row (name, how, must, *arguments of @check)."""
    for number, (name, how, must, *arguments) in enumerate(table):
        def method(self, arguments=arguments):
            check(self, *arguments)
        method.__name__ = f'test_{check.__name__.strip("_")}_{number:02d}'
        setattr(case, method.__name__, forgery(name, how, must)(method))


def encode(value):
    if isinstance(value, str):
        value = value.encode('utf-8', 'surrogateescape')
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def record(kind, **values):
    """One line of evidence-forge's list. Strings may be bytes; @files is a list of paths."""
    files = values.pop('files', None)
    line = {'record': kind, **{key: encode(value) for key, value in values.items()}}
    if files is not None:
        line['files'] = [{'path': encode(path)} for path in files]
    return line


def run_of(where, code, tree='tree-new', command='make test', **more):
    return record('check-run', where=where, exit=code, command=command, tree=tree, **more)


CHECK = 'make test'


def session(**changes):
    """The records of an ordinary session whose check fails; @changes: more values of a record, by its kind."""
    lines = [record('session', task='mend it', check=CHECK, source='caller', baseline='commit-old', baseline_tree='tree-old'),
             record('command', command='ls', exit=0, out=b'ok\n'),
             record('file', path='/work/demo/a.c'),
             record('finish', text='I tried.'),
             record('tree', tree='tree-new', protected='tree-new', files=['a.c'], warning='"pipe" was left out: it is a FIFO'),
             run_of('fresh', 3, output=b'1 failed\n'),
             run_of('baseline', 1, 'tree-old', output=b'1 failed\n'),
             record('commit', commit='commit-new'),
             record('end', outcome='DONE')]
    for kind, values in changes.items():
        for i, line in enumerate(lines):
            if line['record'] == kind.replace('_', '-'):
                lines[i] = {**line, **record(kind.replace('_', '-'), **values)}
                break
        else:
            raise AssertionError(f'there is no record {kind}')
    return lines


def proved(**changes):
    """The records of a session whose check is proved."""
    lines = session(**changes)
    lines[5] = run_of('fresh', 0)
    return lines


class Evidence:
    """A folder with a transcript and a signed report of what @lines say."""

    def __init__(self, folder, lines):
        self.folder = folder
        self.transcript, self.report_path = os.path.join(folder, 'transcript.jsonl'), os.path.join(folder, 'report.json')
        text = '\n'.join(json.dumps(line) for line in lines) + '\n'
        self.made = subprocess.run([FORGE, 'make', folder], input=text, capture_output=True, text=True, timeout=DEADLINE,
                                   check=False)

    @property
    def report(self):
        assert self.made.returncode == 0, self.made.stderr
        with open(self.report_path, encoding='utf-8') as file:
            return json.load(file)

    def lines(self):
        with open(self.transcript, encoding='utf-8') as file:
            return file.read().splitlines()

    def text(self, width=80):
        ran = subprocess.run([FORGE, 'text', self.report_path, str(width)], capture_output=True, timeout=DEADLINE, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.decode()


# Facts in the text form: what is the daemon's, without what a guest, a model or a person chose.

FENCE = re.compile(r'--- untrusted summary, ([0-9a-f]{16}) ---')
LABELS = ('verdict', 'outcome', 'error', 'why not proved', 'task', 'session', 'project', 'model', 'started', 'steps', 'image',
          'accelerator', 'network', 'isolation', 'baseline', 'tree', 'commit', 'timing', 'check', 'setup', 'chosen by',
          'commands', 'files', 'warnings', 'limit hit')
CHOSEN = ('task', 'check', 'setup', 'error', 'started')  # what stands behind these is not the daemon's, or is a time
INVISIBLE = ('Cc', 'Cf', 'Cs', 'Co', 'Zl', 'Zp')


def columns(line):
    return sum(0 if unicodedata.category(c) == 'Mn' else 2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in line)


def skeleton(text, width=80):
    """The facts of a report's text form. Raises AssertionError when a line is nobody's, or ours and not as we write it."""
    facts, marker = [], None
    lines = text.split('\n')
    assert lines.pop() == '', 'the text ends in a line of its own'
    for line in lines:
        hidden = [c for c in line if unicodedata.category(c) in INVISIBLE or (unicodedata.category(c) == 'Zs' and c != ' ')]
        assert not hidden, f'{hidden} is in {line!r}'
        assert columns(line) < width, f'a terminal would fold {line!r}'
        if marker is not None:
            marker = inside(line, marker)
        elif FENCE.fullmatch(line):
            marker = FENCE.fullmatch(line).group(1)
        elif line:
            facts.append(fact(line))
    assert marker in (None, 'closed'), 'the fence is not closed'
    assert sum(line.startswith('verdict:') for line in lines) == 1
    assert lines[0].startswith('verdict:')
    return [line for line in facts if line is not None]


def inside(line, marker):
    """One line after the fence has begun."""
    assert marker != 'closed', f'{line!r} stands behind the fence'
    if line == f'--- end of the untrusted summary, {marker} ---':
        return 'closed'
    assert line.startswith('| ') or line in ("(the model's own words; nothing in them was checked)", '(cut here by Belljar)'), line
    return marker


def fact(line):
    """What in a line outside of the fence is the daemon's; None: nothing."""
    if line.startswith('    | ') or line.startswith('  - ') or line.startswith('    ') and not line.strip()[:1].isdigit():
        return None
    if re.match(r' +\d+  ', line):
        return line[:31]
    if re.match(r'  (added|modified|deleted|typechange) ', line):
        return line[:27]
    if re.match(r'  (same|fresh|baseline|protected) ', line):
        return line
    if line.startswith('        '):  # a sentence of ours that went on
        return None
    label = line.split(':', 1)[0]
    assert label in LABELS, f'this line is nobody\'s: {line!r}'
    return label if label in CHOSEN else line


def without(report, *paths):
    """A copy of a report without what was chosen by others and without times. @paths: dotted, a * for every item"""
    copy = json.loads(json.dumps(report))
    for path in ('transcript', 'signature', 'started', 'finished', 'duration_s', 'timing', *paths):
        drop(copy, path.split('.'))
    return copy


def drop(value, path):
    if path[0] == '*':
        for item in value:
            drop(item, path[1:])
    elif len(path) > 1:
        drop(value[path[0]], path[1:])
    else:
        value.pop(path[0], None)


class ForgeryCase(unittest.TestCase):
    def folder(self):
        folder = tempfile.mkdtemp(prefix='bj-forge-')
        self.addCleanup(shutil.rmtree, folder)
        return folder

    def evidence(self, lines):
        return Evidence(self.folder(), lines)

    def verdict(self, lines):
        """Returns (verdict, why) of a report of these records."""
        check = self.evidence(lines).report['check']
        return check['verdict'], check['why']
