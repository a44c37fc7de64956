# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon that has run for long, one whose files were damaged, and one that wakes up after a power cut."""
import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

import belljar_test as bt
import vitals
from sessions import SessionCase, call, finish, turn


RSS_KIB = 6 * 1024  # fifteen sessions; two to three MiB are the heap that settles


class Copy(bt.Daemon):
    """Another daemon, on another bus, on a copy of what lies on the first one's disk now."""

    def __init__(self, original):
        super().__init__(image=None, model=original.model, config=original.config)
        self.original = original

    def write_config(self):
        super().write_config()
        os.mkdir(self.state_dir, 0o711)
        for name in os.listdir(self.original.state_dir):
            # An image is sealed with its inode, which survives a power cut.
            way = ['-al'] if name in ('images', 'templates') else ['-a', '--reflink=auto', '--sparse=always']
            subprocess.run(['cp', *way, os.path.join(self.original.state_dir, name), self.state_dir], check=True)


class Damage(SessionCase):
    """Files of the state folder cut off or overwritten while no daemon ran: it starts, and only what was damaged is lost."""

    WORK = turn(call('write_file', path='made.txt', content='kept\n'))
    scenarios = {
        'ask': [turn(*WORK['tool_calls'], call('ask', question='On?')), finish('With an answer.')],
        'work': [WORK, turn(call('run', command='sleep 600'))],
        'quick': [WORK, finish()],
    }
    config = '[limits]\nsessions=8\nsessions-per-user=8\npark-after=1\n'
    GHOST = 'ghostaaa'

    def path(self, session, *names):
        return os.path.join(self.daemon.state_dir, 'sessions', session, *names)

    def made(self, name):
        return os.path.join(self.daemon.state_dir, 'projects', name, 'work', 'made.txt')

    def begin(self, scenario, name):
        self.import_project(name, {'a.txt': 'a\n'})
        ran = self.daemon.cli('task', f'Do it [scenario {scenario}]', '--project', name, '--detach')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    def report(self, session, *options):
        return self.daemon.cli_json('report', session, *options)

    def verify(self, session):
        return self.daemon.cli('report', session, '--verify').returncode

    @staticmethod
    def overwrite(path, size=64):
        with open(path, 'r+b') as file:
            file.write(bytes(range(128, 128 + size)))

    @staticmethod
    def cut(path, left):
        """@left: bytes that stay, or that go when negative"""
        os.truncate(path, left if left >= 0 else os.path.getsize(path) + left)

    def sql(self, *statements):
        with contextlib.closing(sqlite3.connect(os.path.join(self.daemon.state_dir, 'belljar.db'))) as database, database:
            return [database.execute(statement).fetchall() for statement in statements][-1]

    def begin_all(self):
        names = {'note': 'ask', 'park': 'ask', 'whole': 'ask', 'cut': 'work', 'noise': 'work', 'done': 'quick'}
        found = {name: self.begin(scenario, name) for name, scenario in names.items()}
        found['open'] = self.open_session(network='none')
        self.wait_state(found['done'], 'finished')
        bt.wait_until(lambda: all(os.path.exists(self.made(name)) for name in names), 'all to have worked', 180)
        bt.wait_until(lambda: all(os.path.exists(self.path(found[name], 'parked', 'park.ini')) for name in ('note', 'park', 'whole')),
                      'all to be parked', 180)
        return found

    def damage_all(self, found):
        self.overwrite(self.path(found['note'], 'ask', 'ask.ini'))
        self.cut(self.path(found['park'], 'parked', 'park.ini'), 40)
        self.cut(self.path(found['cut'], 'evidence', 'transcript.jsonl'), -10)
        self.overwrite(self.path(found['noise'], 'evidence', 'transcript.jsonl'))
        self.overwrite(self.path(found['done'], 'evidence', 'transcript.jsonl'))
        victim = tempfile.mkdtemp(prefix='bj-victim-')
        self.addCleanup(shutil.rmtree, victim)
        with open(self.path(found['open'], 'machine.ini'), 'w', encoding='ascii') as out:
            out.write(f'[machine]\nid={found["open"]}\nrun-dir={victim}\nslot=4294967296\nmemory-mib=-1\n')
        columns = ', '.join(row[1] for row in self.sql('PRAGMA table_info(sessions)') if row[1] not in ('id', 'state', 'options', 'slot'))
        self.sql(f"INSERT INTO sessions (id, state, options, slot, {columns}) SELECT '{self.GHOST}', 'running', '{{\"wall', 1000, {columns}"
                 f" FROM sessions WHERE id = '{found['done']}'",
                 "INSERT INTO journal (at, subject, action, data, outcome) VALUES (1, 'session/nobodyaa', 'machine-start', '{', '')")
        return victim

    def check_settled(self, session, name):
        code, report = self.report(session)
        self.assertEqual((code, report['outcome'], self.state(session)), (1, 'FAILED', 'failed'), report)
        self.assertEqual(os.listdir(self.path(session)), ['evidence'])
        if name:
            self.assertTrue(os.path.exists(self.made(name)))
            log = self.daemon.cli('project', 'log', name).stdout
            self.assertIn(session, log, 'what it left is committed')
        return report

    def test_damaged(self):
        found = self.begin_all()
        self.daemon.kill()
        victim = self.damage_all(found)
        self.daemon.start()
        # The damaged question is lost, the work is not.
        report = self.check_settled(found['note'], 'note')
        self.assertIn('ask.ini is damaged', report['error']['message'])
        self.assertEqual(self.verify(found['note']), 0)
        # A record that was cut is cut off, and the chain goes on.
        self.check_settled(found['cut'], 'cut')
        self.assertEqual(self.verify(found['cut']), 0)
        # Without its beginning it proves nothing any more: a new one says so, and proves what was left to do.
        report = self.check_settled(found['noise'], 'noise')
        self.assertTrue(any('transcript.jsonl.damaged' in warning for warning in report['warnings']), report['warnings'])
        self.assertEqual(self.verify(found['noise']), 0)
        self.assertEqual(self.report(found['done'])[1]['outcome'], 'DONE')
        self.assertNotEqual(self.verify(found['done']), 0)
        # The note of a machine leads nowhere else, and the machine is gone.
        self.check_settled(found['open'], None)
        self.assertTrue(os.path.isdir(victim))
        bt.wait_until(lambda: not bt.machines_of(self.daemon.state_dir), 'machines to be gone', 60)
        # What never was is settled too.
        self.assertEqual(self.state(self.GHOST), 'failed')
        self.assertEqual(self.sql("SELECT id FROM journal WHERE outcome = ''"), [])
        # The others wait on, and can be answered or stopped.
        code, report = self.daemon.cli_json('answer', found['park'], 'yes')
        self.assertEqual((code, report['outcome']), (3, 'NEEDS INPUT'), report)
        self.assertTrue(any('park.ini is damaged' in warning for warning in report['warnings']), report['warnings'])
        self.assertEqual(self.daemon.cli('stop', found['park']).returncode, 0)
        self.wait_state(found['park'], 'cancelled')
        code, report = self.daemon.cli_json('answer', found['whole'], 'yes')
        self.assertEqual((code, report['outcome'], report['summary']['text']), (5, 'DONE', 'With an answer.'), report)
        self.assertEqual(self.task('quick', '--project', 'noise')[0], 5)


class PowerCut(SessionCase):
    scenarios = {
        'work': [turn(call('write_file', path='made.txt', content='kept\n')),
                 turn(call('run', command='while ! test -e go; do sleep 0.2; done')), finish('Both went on.')],
    }

    def project(self, daemon, *names):
        return os.path.join(daemon.state_dir, 'projects', 'cut', 'work', *names)

    def test_copy(self):
        """The session is settled and its work committed where the power went; the original does not notice."""
        self.import_project('cut', {'a.txt': 'a\n'})
        session = self.daemon.cli('task', 'Do it [scenario work]', '--project', 'cut', '--detach').stdout.strip()
        bt.wait_until(lambda: os.path.exists(self.project(self.daemon, 'made.txt')), 'the file', 120)
        machines = bt.machines_of(self.daemon.state_dir)
        self.assertEqual(len(machines), 1)
        with Copy(self.daemon) as copy:
            code, report = copy.cli_json('report', session)
            self.assertEqual((code, report['outcome']), (1, 'FAILED'), report)
            self.assertEqual([change['path'] for change in report['files_changed']], ['made.txt'])
            self.assertTrue(report['commit'], report)
            self.assertEqual(copy.cli('report', session, '--verify').returncode, 0)
            with open(self.project(copy, 'go'), 'w', encoding='ascii'):
                pass
            code, report = copy.cli_json('task', 'Do it [scenario work]', '--project', 'cut')
            self.assertEqual((code, report['outcome']), (5, 'DONE'), report)
            self.assertEqual(bt.machines_of(self.daemon.state_dir), machines)
        self.assertEqual(self.state(session), 'running')
        with open(self.project(self.daemon, 'go'), 'w', encoding='ascii'):
            pass
        code, report = self.daemon.cli_json('report', '--wait', session)
        self.assertEqual((code, report['outcome'], report['summary']['text']), (5, 'DONE', 'Both went on.'), report)


class InARow(SessionCase):
    """Twenty sessions, one after the other: the last fifteen take nothing that stays."""

    scenarios = {'work': [turn(call('write_file', path='made.txt', content='kept\n')), finish()]}
    config = '[limits]\nsessions=2\n'

    def one(self, number):
        if number % 2:
            code, report = self.task('work', '--project', 'row')
            self.assertEqual((code, report['outcome']), (5, 'DONE'), report)
            return
        session = self.open_session()
        self.assertEqual(self.execute(session, 'true').returncode, 0)
        self.stop(session)

    def sample(self):
        vitals.settle(self.daemon)
        return vitals.sample(self.daemon)

    def test_twenty(self):
        self.import_project('row', {'a.txt': 'a\n'})
        for number in range(5):
            self.one(number)
        early = self.sample()
        for number in range(5, 20):
            self.one(number)

        def same():
            late.update(self.sample())
            return all(late[name] <= early[name] for name in ('fds', 'threads', 'children', 'sockets', 'mounts'))
        late = {}
        with contextlib.suppress(AssertionError):
            bt.wait_until(same, 'threads without work to end', 60)
        self.assertTrue(same(), (early, late))
        self.assertLess(late['rss'] - early['rss'], RSS_KIB, (early, late))


if __name__ == '__main__':
    unittest.main(verbosity=2)
