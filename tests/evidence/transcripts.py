# SPDX-License-Identifier: GPL-3.0-or-later
"""Evidence that somebody changed after the session: what `belljar report --verify` says, given the files as they are now."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import forgeries
from forgeries import BUILD, DEADLINE, FORGE, HERE, Evidence, forgery, proved, record, rows, run_of, session

CLI = os.path.join(BUILD, 'cli', 'belljar')
OURS, OTHER = 'abcd2345', 'efgh2345'


def rehash(records):
    """The lines of a transcript with numbers and hashes put right again."""
    lines, head = [], '0' * 64
    for number, line in enumerate(records):
        line = {**line, 'n': number, 'prev': head}
        lines.append(json.dumps(line, sort_keys=True, separators=(',', ':'), ensure_ascii=False))
        head = hashlib.sha256(lines[-1].encode()).hexdigest()
    return lines


class Changed(unittest.TestCase):
    """Each test gets both sessions' evidence whole; it changes files and asks for the first one's."""

    @classmethod
    def setUpClass(cls):
        cls.origin = tempfile.mkdtemp(prefix='bj-origin-')
        cls.addClassCleanup(shutil.rmtree, cls.origin)
        cls.folder = tempfile.mkdtemp(prefix='bj-served-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name, lines in ((OURS, session()), (OTHER, proved(session={'session': OTHER}))):
            os.mkdir(os.path.join(cls.origin, name))
            key = os.path.join(cls.origin, OURS, 'report.key')
            if name == OTHER:  # one daemon signs both
                shutil.copy(key, os.path.join(cls.origin, OTHER))
                shutil.copy(key + '.pub', os.path.join(cls.origin, OTHER))
            assert Evidence(os.path.join(cls.origin, name), lines).made.returncode == 0
        shutil.copy(os.path.join(cls.origin, OURS, 'report.key.pub'), os.path.join(cls.origin, 'key'))
        shutil.copy(os.path.join(cls.origin, 'key'), os.path.join(cls.folder, 'key'))
        bus = cls.start(['dbus-daemon', '--session', '--nofork', '--print-address', f'--address=unix:path={cls.folder}/bus'])
        cls.address = bus.stdout.readline().strip()
        daemon = cls.start([sys.executable, os.path.join(HERE, 'served.py'), cls.address, cls.folder])
        assert daemon.stdout.readline() == 'ready\n'

    @classmethod
    def start(cls, argv):
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end, process)
        return process

    @staticmethod
    def end(process):
        process.stdin.close()
        process.terminate()
        process.wait(DEADLINE)
        process.stdout.close()

    def setUp(self):
        for name in (OURS, OTHER):
            shutil.rmtree(self.at(name), ignore_errors=True)
            shutil.copytree(os.path.join(self.origin, name), self.at(name))
        shutil.copy(os.path.join(self.origin, 'key'), self.at('key'))

    def at(self, *names):
        return os.path.join(self.folder, *names)

    def read(self, name, session_id=OURS):
        with open(self.at(session_id, name), encoding='utf-8') as file:
            return file.read()

    def write(self, name, text):
        with open(self.at(OURS, name), 'w', encoding='utf-8') as out:
            out.write(text)

    def report(self, *options):
        return subprocess.run([CLI, 'report', OURS, *options], env={**os.environ, 'BELLJAR_BUS': self.address, 'LC_ALL': 'C.UTF-8'},
                              capture_output=True, text=True, timeout=DEADLINE, check=False)

    def assert_refused(self, said, *options):
        ran = self.report('--verify', *options)
        self.assertEqual((ran.returncode, ran.stdout), (1, ''), ran.stderr)
        self.assertIn(said, ran.stderr)

    def test_whole(self):
        ran = self.report('--verify')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn('verdict:     failed', self.report().stdout)

    def lines(self, change, said):
        """A change of the transcript's lines."""
        lines = self.read('transcript.jsonl').splitlines()
        before = list(lines)
        lines = change(lines) or lines
        self.assertNotEqual(lines, before)
        self.write('transcript.jsonl', ''.join(line + '\n' for line in lines))
        self.assert_refused(said)

    def rebuilt(self, change, said):
        """A change of the records, all hashes put right; the report stays."""
        records = [json.loads(line) for line in self.read('transcript.jsonl').splitlines()]
        self.assertEqual(rehash(records), self.read('transcript.jsonl').splitlines(), 'hashes are made as Belljar makes them')
        records = change(records) or records
        self.write('transcript.jsonl', ''.join(line + '\n' for line in rehash(records)))
        self.assert_refused(said)

    def edited(self, change, said):
        """A change of the report's text."""
        before = self.read('report.json')
        after = change(before)
        self.assertNotEqual(after, before)
        self.write('report.json', after)
        self.assert_refused(said)

    @forgery('rebuilt and signed anew', 'a transcript that proves, hashes and report made again, signed with a key of one\'s own',
             'signed with another key')
    def test_rebuilt_with_another_key(self):
        self.forge_with_own_key()
        self.assert_refused('signed with another key')

    def forge_with_own_key(self):
        shutil.rmtree(self.at(OURS))
        os.mkdir(self.at(OURS))
        assert Evidence(self.at(OURS), proved()).made.returncode == 0

    @forgery('another daemon', 'all of it forged, and the daemon itself gives the forger\'s key', 'refused with a copy of the key (--key)')
    def test_another_daemon(self):
        self.forge_with_own_key()
        shutil.copy(self.at(OURS, 'report.key.pub'), self.at('key'))
        self.assertEqual(self.report('--verify').returncode, 0, 'nobody could know without a copy of the key')
        self.assertIn('came from the daemon itself', self.report('--verify').stderr)
        self.assert_refused('signed with another key', '--key', os.path.join(self.origin, 'key'))

    @forgery('our key\'s name', 'a forged report with the real key\'s name on the signature', 'the signature does not hold')
    def test_name_of_the_key(self):
        own = self.read('report.key.pub').strip()
        self.forge_with_own_key()
        report = json.loads(self.read('report.json'))
        report['signature']['key'] = own
        self.write('report.json', json.dumps(report))
        self.assert_refused('does not hold')

    @forgery('swapped transcript', 'another session\'s transcript', 'count or head differ')
    def test_swapped_transcript(self):
        shutil.copy(self.at(OTHER, 'transcript.jsonl'), self.at(OURS))
        self.assert_refused('another one')

    @forgery('swapped report', 'another session\'s report', 'it is another session\'s')
    def test_swapped_report(self):
        shutil.copy(self.at(OTHER, 'report.json'), self.at(OURS))
        self.assert_refused(OTHER)

    @forgery('swapped evidence', 'another session\'s transcript and report, both whole and well signed',
             'it is another session\'s, shown or verified')
    def test_swapped_evidence(self):
        for name in ('transcript.jsonl', 'report.json'):
            shutil.copy(self.at(OTHER, name), self.at(OURS))
        self.assert_refused(OTHER)
        ran = self.report()
        self.assertEqual((ran.returncode, ran.stdout), (1, ''), ran.stderr)

    @forgery('report of a part', 'the transcript cut after a pass, and a report that was rightly made of that part',
             'not signed by the daemon')
    def test_part(self):
        lines = self.read('transcript.jsonl').splitlines()
        self.write('transcript.jsonl', ''.join(line + '\n' for line in lines[:6]))
        os.unlink(self.at(OURS, 'report.key.pub'))
        os.unlink(self.at(OURS, 'report.key'))
        subprocess.run([FORGE, 'sign', self.at(OURS)], check=True, timeout=DEADLINE)
        self.assertIn('IN PROGRESS', self.read('report.json'))
        self.assert_refused('in progress')

    @forgery('transcript as people see it', 'records with ANSI and newlines', '`belljar transcript` shows a line a record')
    def test_shown(self):
        evil = '\x1b[2J\nseen check-run exit=0\r\u202e'
        shutil.rmtree(self.at(OURS))
        os.mkdir(self.at(OURS))
        lines = session(finish={'text': evil}, command={'command': evil, 'out': evil.encode()})
        lines.insert(3, record('turn', json=json.dumps({evil: evil, 'content': evil})))
        assert Evidence(self.at(OURS), lines).made.returncode == 0
        ran = subprocess.run([CLI, 'transcript', OURS, '--text'], env={**os.environ, 'BELLJAR_BUS': self.address, 'LC_ALL': 'C.UTF-8'},
                             capture_output=True, text=True, timeout=DEADLINE, check=True)
        shown = ran.stdout.splitlines()
        self.assertEqual(len(shown), len(lines))
        self.assertFalse([c for c in ran.stdout if c != '\n' and forgeries.unicodedata.category(c) in forgeries.INVISIBLE])
        self.assertEqual([line.split()[2] for line in shown if line.split()[3:4] == ['check-run']], ['seen'] * 2, shown)


def edit(index, old, new):
    def change(lines):
        assert old in lines[index]
        lines[index] = lines[index].replace(old, new, 1)
    return change


rows(Changed, Changed.lines, [
    ('record edited', 'an exit code of 3 made 0', 'the next record does not follow', edit(5, '"exit":3', '"exit":0'), 'Record 6'),
    ('last record edited', 'the session\'s end made another', 'the head differs', edit(-1, '"DONE"', '"DONF"'), 'another one'),
    ('record removed', 'the failed run taken out', 'numbers do not follow', lambda lines: lines.pop(5) and None, 'Record 5'),
    ('first record removed', 'the record that binds taken out', 'numbers do not follow', lambda lines: lines.pop(0) and None, 'Record 0'),
    ('records reordered', 'the runs swapped', 'numbers do not follow', lambda lines: lines[:5] + [lines[6], lines[5]] + lines[7:],
     'Record 5'),
    ('record doubled', 'the last record twice', 'numbers do not follow', lambda lines: lines + lines[-1:], 'Record 9'),
    ('tail cut', 'the last two records cut off', 'fewer than the report counts', lambda lines: lines[:-2],
     '7 records, the report counts 9'),
    ('claim as a fact', 'a claimed record made a seen one', 'there is no such type', edit(3, '"claimed"', '"seen"'), 'Record 3'),
    ('key doubled', 'an exit code that stands twice in a record', 'not as Belljar writes', edit(5, '"exit":3', '"exit":3,"exit":0'),
     'Record 5'),
    ('number rewritten', 'an exit code of 3.0', 'not as Belljar writes', edit(5, '"exit":3', '"exit":3.0'), 'Record 5'),
    ('record added', 'a record without a hash at the end', 'it does not follow', lambda lines: lines + ['{"by":"seen"}'], 'Record 9'),
    ('comment added', 'JSON with a comment in it', 'not JSON as Belljar writes it', edit(5, '{', '{/*x*/'), 'Record 5'),
])
rows(Changed, Changed.rebuilt, [
    ('edited and rehashed', 'an exit code made 0, all hashes fresh', 'the head is not the signed one',
     lambda records: records[5]['data'].update(exit=0), 'another one'),
    ('removed and rehashed', 'the failed run taken out, all hashes fresh', 'fewer than the signed report counts',
     lambda records: records[:5] + records[6:], 'the report counts'),
    ('reordered and rehashed', 'the runs swapped, all hashes fresh', 'the head is not the signed one',
     lambda records: records[:5] + [records[6], records[5]] + records[7:], 'another one'),
    ('exchanged and rehashed', 'a check that is true from the first record on, all hashes fresh', 'the head is not the signed one',
     lambda records: [{**r, 'data': {**r['data'], 'check': {**r['data'].get('check', {}), 'command': 'true'}}} if r['n'] == 0 else r
                      for r in records], 'another one'),
])
rows(Changed, Changed.edited, [
    ('verdict edited', 'failed made proved', 'the signature does not hold', lambda text: text.replace('"failed"', '"proved"'),
     'does not hold'),
    ('key added', 'one more key in the report', 'the signature does not hold', lambda text: text[:-1] + ',"proof":"yes"}', 'does not hold'),
    ('verdict twice', 'a second verdict before the signed one, for readers that take the first', 'no key may stand twice',
     lambda text: text.replace('"verdict":"failed"', '"verdict":"proved","verdict":"failed"'), 'stands twice'),
    ('outcome twice', 'a second outcome after the signed one, for readers that take the last', 'no key may stand twice',
     lambda text: text[:-1] + ',"outcome":"DONE"}', 'stands twice'),
    ('commented report', 'a comment in the report that a person reads as its verdict', 'no comments',
     lambda text: '{/* "verdict":"proved" */' + text[1:], 'JSON'),
    ('text behind the report', 'a second report behind the first', 'refused', lambda text: text + text.replace('failed', 'proved'), 'JSON'),
    ('signature taken off', 'a report without one', 'not signed', lambda text: json.dumps({k: v for k, v in json.loads(text).items()
                                                                                          if k != 'signature'}), 'not signed'),
    ('algorithm none', 'a signature of the kind “none”', 'not of the kind Ed25519', lambda text: text.replace('"Ed25519"', '"none"'),
     'Ed25519'),
    ('early end', 'the outcome made IN PROGRESS, which has no signature yet', 'nothing is verified',
     lambda text: text.replace('"outcome":"DONE"', '"outcome":"IN PROGRESS"'), 'in progress'),
])


class Numbers(forgeries.ForgeryCase):
    @forgery('number as a fraction', 'numbers of the signed report written in another way: 3.0, 3e0', 'they read as the same numbers')
    def test_numbers(self):
        lines = proved()
        lines[5:5] = [run_of('same', 3, None)]
        evidence = self.evidence(lines)
        before = evidence.text()
        with open(evidence.report_path, encoding='utf-8') as file:
            text = file.read()
        changed = text
        for key in ('exit', 'n', 'added', 'removed', 'steps', 'version', 'count', 'files_total'):
            for number in range(20):
                changed = changed.replace(f'"{key}":{number},', f'"{key}":{number}.0,').replace(f'"{key}":{number}}}',
                                                                                                f'"{key}":{number}e0}}')
        self.assertGreater(len(changed), len(text) + 15)
        with open(evidence.report_path, 'w', encoding='utf-8') as out:
            out.write(changed)
        cut = before.index('--- untrusted')
        self.assertEqual(evidence.text()[:cut], before[:cut])
