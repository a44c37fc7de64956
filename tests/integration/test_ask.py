#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sub-agent asks a person: the machine waits in memory or on disk, over restarts of the daemon, and goes on with the answer."""
import glob
import json
import os
import re
import shutil
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

# What a machine has in memory that a new one would not have: a process, its output, a file outside the project.
PREPARE = "echo kept > /root/mark; cat /etc/machine-id > /root/id; setsid sleep 100000 > /dev/null 2>&1 < /dev/null & echo $! > /root/pid"
LOOK = ("kill -0 $(cat /root/pid) && cat /root/mark && cmp /root/id /etc/machine-id && echo same-machine"
        " && cat notes.txt && touch after.txt && date +%s > /root/now && sync")
BEAT = "while :; do echo beat; sleep 0.2; done"

ASKS = [
    turn(call('run', command=PREPARE), call('start', command=BEAT)),
    turn(call('write_file', path='notes.txt', content='before the question\n'),
         call('ask', question='Which colour?\n\x1b[31mverdict: proved'),
         call('run', command='echo must not run > /root/skipped')),
    turn(call('run', command=LOOK), call('run', command='test ! -e /root/skipped'), call('poll', id=1, wait_s=2), call('list_background'),
         when='blue'),
    turn(call('note', text='on and on'), when='while :; do echo beat'),
    finish('The colour is blue.'),
]
CHECK = 'test $(ls | wc -l) = 3'


class Waiting(SessionCase):
    """The parts that every kind of wait shares."""

    scenarios = {'ask': ASKS}

    def ask(self, project, *options):
        self.import_project(project, {'a.txt': 'a\n'})
        code, report = self.task('ask', '--project', project, *options)
        self.assertEqual((code, report['outcome']), (3, 'NEEDS INPUT'), report)
        self.assertIn('Which colour?', report['question'])
        self.assertNotIn('\x1b', report['question'])
        self.assertEqual(self.state(report['session']), 'needs-input')
        return report['session']

    def answer(self, session, text='blue', daemon=None):
        return (daemon or self.daemon).cli_json('answer', session, text)

    def check_went_on(self, code, report, start):
        self.assertEqual((code, report['outcome'], report['check']['verdict']),
                         (0, 'DONE', 'proved') if report['check']['command'] else (5, 'DONE', 'none'), report)
        self.assertIsNone(report['question'])
        runs = [command for command in report['commands'] if command['tool'] == 'run']
        self.assertEqual([run['exit'] for run in runs], [0, 0, 0], runs)
        self.assertEqual(sum(command['tool'] == 'start' for command in report['commands']), 1)
        self.assertIn(start, [machine['start'] for machine in report['machines']], report['machines'])
        self.assertEqual(self.daemon.cli('report', report['session'], '--verify').returncode, 0)
        records = [json.loads(line) for line in self.daemon.cli('transcript', '--raw', report['session']).stdout.splitlines()]
        kinds = [(record['by'], record['type']) for record in records]
        self.assertLess(kinds.index(('claimed', 'ask')), kinds.index(('seen', 'answer')))
        answer = next(record['data'] for record in records if record['type'] == 'answer')
        self.assertEqual((answer['text'], answer['uid']), ('blue', os.getuid()))
        polls = [record for record in records if record['type'] == 'background' and record['data']['event'] == 'end']
        self.assertEqual(polls, [], 'the background command still runs')
        self.assertFalse(os.path.exists(self.path(report['session'], 'ask')))
        self.assertFalse(os.path.exists(self.path(report['session'], 'parked')))
        return records

    def path(self, session, *names):
        return os.path.join(self.daemon.state_dir, 'sessions', session, *names)

    def wait_parked(self, session):
        bt.wait_until(lambda: os.path.exists(self.path(session, 'parked', 'park.ini')) and not bt.machines_of(self.path(session)),
                      'the machine to go to disk', 120)


class InMemory(Waiting):
    """The machine is paused and stays in memory."""

    config = '[projects]\nevidence=1G\n'

    def test_answer(self):
        session = self.ask('plain', '--check', CHECK)
        self.assertNotIn('prune', [job['operation'] for job in self.daemon.cli_json('jobs')[1]], 'a session that waits is not over')
        shown = self.daemon.cli('report', session).stdout
        self.assertIn('\n| Which colour?\n', shown)
        self.assertIn(f'belljar answer {session}', shown)
        self.assertIn('\n| Which colour?\n', self.daemon.cli('show', session).stdout)
        self.assertFalse([line for line in shown.splitlines() if line.startswith('verdict: proved')])
        self.assertEqual(self.proxy(session).Details()['question'].split('\n', maxsplit=1)[0], 'Which colour?')
        ran = self.daemon.cli('exec', session, '--', 'true')
        self.assertEqual(ran.returncode, 1)
        self.assertIn('waits for an answer', ran.stderr)
        for wrong, what in (('   ', 'empty'), ('x' * 70000, '65536')):
            ran = self.daemon.cli('answer', session, wrong)
            self.assertEqual(ran.returncode, 1)
            self.assertIn(what, ran.stderr)
        code, report = self.answer(session)
        self.check_went_on(code, report, 'paused')
        self.assertEqual(report['check']['verdict'], 'proved')
        ran = self.daemon.cli('answer', session, 'too late')
        self.assertEqual(ran.returncode, 1)
        self.assertIn('asks nothing: it is finished', ran.stderr)

    def test_two_answers(self):
        session = self.ask('twice')
        ran = self.daemon.cli('answer', '--detach', session, 'blue')
        self.assertEqual((ran.returncode, ran.stdout), (0, session + '\n'), ran.stderr)
        ran = self.daemon.cli('answer', '--detach', session, 'red')
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertTrue('answered already' in ran.stderr or 'asks nothing' in ran.stderr, ran.stderr)
        self.wait_state(session, 'finished')

    def test_killed_daemon(self):
        """The machine outlives the daemon, and the next one pauses it until the answer is there."""
        session = self.ask('killed')
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.state(session), 'needs-input')
        code, report = self.answer(session)
        self.check_went_on(code, report, 'paused')
        self.assertTrue(any('restarted' in warning for warning in report['warnings']), report['warnings'])


class LaterOnDisk(Waiting):
    """The machine stays in memory until another daemon, which did not clone it, puts it to disk."""

    def disks(self, session):
        """What the QEMU of this session's machine was given, sorted; None while there is none."""
        for pid in bt.machines_of(self.path(session)):
            words = bt.read_text(f'/proc/{pid}/cmdline')
            return sorted(set(re.findall(r'"filename":"([^"]+\.qcow2)"', words)))
        return None

    def test_killed_then_parked(self):
        """What its disk stands on is known without the template: neither the old daemon's memory nor the template is left."""
        session = self.ask('orphan', '--check', CHECK)
        before = self.disks(session)
        self.assertEqual([os.path.basename(path) for path in before], ['disk.qcow2', 'backing.qcow2', 'overlay.qcow2'])
        self.daemon.kill()
        for template in glob.glob(os.path.join(self.daemon.state_dir, 'templates', '*')):
            shutil.rmtree(template)
        self.daemon.config = '[limits]\npark-after=1\n'
        self.daemon.write_config()
        self.daemon.start()
        self.wait_parked(session)
        self.assertEqual(self.daemon.cli('answer', '--detach', session, 'blue').returncode, 0)
        self.assertEqual(bt.wait_until(lambda: self.disks(session), 'the machine to come back', 60), before)
        self.check_went_on(*self.daemon.cli_json('report', session, '--wait'), 'parked')


class OnDisk(Waiting):
    """The machine goes to disk after a second."""

    config = '[limits]\npark-after=1\n'

    def test_parked(self):
        """Also when the template that it was cloned from is gone; its clock is right afterwards."""
        session = self.ask('parked')
        self.wait_parked(session)
        bt.wait_until(lambda: self.daemon.manager().get_cached_property('Budget').unpack()['sessions-used'] == 0,
                      'the budget to be free', 20)
        for template in glob.glob(os.path.join(self.daemon.state_dir, 'templates', '*')):
            shutil.rmtree(template)
        ran = self.daemon.cli('screenshot', session, '-o', '/dev/null')
        self.assertEqual(ran.returncode, 1)
        self.assertIn('has no machine', ran.stderr)
        code, report = self.answer(session)
        records = self.check_went_on(code, report, 'parked')
        park = next(record for record in records if record['type'] == 'park')
        self.assertGreater(park['data']['bytes'], 1 << 20)
        machine = next(record['data'] for record in records if record['type'] == 'machine' and record['data']['start'] == 'parked')
        self.assertLess(abs(machine['clock_offset_s']), 10)

    def test_restarts(self):
        """A daemon that ends takes nothing with it; a damaged state is no machine, and the wait goes on."""
        session = self.ask('restarts')
        self.daemon.end()
        self.assertEqual(bt.machines_of(self.daemon.state_dir), [])
        self.daemon.start()
        self.assertEqual(self.state(session), 'needs-input')
        state = self.path(session, 'parked', 'state')
        with open(state, 'r+b') as file:
            file.seek(1 << 16)
            byte = file.read(1)
            file.seek(1 << 16)
            file.write(bytes([byte[0] ^ 1]))
        code, report = self.answer(session)
        self.assertEqual((code, report['outcome']), (3, 'NEEDS INPUT'), report)
        self.assertTrue(any('damaged' in warning for warning in report['warnings']), report['warnings'])
        with open(state, 'r+b') as file:
            file.seek(1 << 16)
            file.write(byte)
        code, report = self.answer(session)
        self.check_went_on(code, report, 'parked')

    def test_stop(self):
        """What was done before the question is kept when nobody answers."""
        session = self.ask('stopped')
        self.wait_parked(session)
        ran = self.daemon.cli('stop', session)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        code, report = self.daemon.cli_json('report', session)
        self.assertEqual((code, report['outcome']), (1, 'CANCELLED'), report)
        self.assertEqual([change['path'] for change in report['files_changed']], ['notes.txt'])
        self.assertEqual({'run', 'ask', 'parked', 'agent'} & set(os.listdir(self.path(session))), set())


if __name__ == '__main__':
    unittest.main(verbosity=2)
