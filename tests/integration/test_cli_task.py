# SPDX-License-Identifier: GPL-3.0-or-later
"""The command, the real daemon and a real machine; only the model is scripted."""
import json
import os
import sys
import tempfile
import unittest

from gi.repository import GLib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
from belljar_test import ROOT, Daemon, Replay, wait_until  # noqa: E402  pylint: disable=wrong-import-position

PROJECT = os.path.join(ROOT, 'tests', 'replay', 'projects', 'fix-bug')
CHECK = 'python3 -m unittest -q test_wordcount'
TASK = ('task', 'Make the tests pass', '--project', 'demo', '--network', 'none')


class TaskTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.replay = Replay('fix-bug')
        cls.addClassCleanup(cls.replay.close)
        cls.daemon = cls.enterClassContext(Daemon(model=cls.replay))

    def setUp(self):
        ran = self.daemon.cli('project', 'import', 'demo', PROJECT)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.addCleanup(self.daemon.cli, 'project', 'delete', 'demo')

    def test_a_bug_is_fixed_and_that_is_proved(self):
        code, report = self.daemon.cli_json(*TASK, '--check', CHECK)
        self.assertEqual((code, report['outcome'], report['check']['verdict']), (0, 'DONE', 'proved'), self.daemon.log())
        session = report['session']
        self.assertEqual([entry['path'] for entry in report['files_changed']], ['wordcount.py'])
        self.check_evidence(session, report)
        log = json.loads(self.daemon.cli('project', 'log', 'demo', '--json').stdout)
        self.assertEqual((log[0]['verdict'], log[0]['session']), ('proved', session))
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.daemon.cli('project', 'copy-out', 'demo', '.', folder).returncode, 0)
            self.assertIn('wordcount.py', os.listdir(folder))

    def check_evidence(self, session, report):
        text = self.daemon.cli('report', session)
        self.assertEqual(text.returncode, 0)
        self.assertIn('proved', text.stdout)
        verified = self.daemon.cli('report', session, '--verify')
        self.assertEqual(verified.returncode, 0, verified.stderr)
        key = os.path.join(self.daemon.state_dir, 'keys', 'report.key.pub')
        self.assertEqual(self.daemon.cli('report', session, '--verify', '--key', key).returncode, 0)
        with tempfile.NamedTemporaryFile('w', suffix='.pub') as other:
            other.write('A' * 43 + '=')
            other.flush()
            self.assertEqual(self.daemon.cli('report', session, '--verify', '--key', other.name).returncode, 1)
        records = json.loads(self.daemon.cli('transcript', session, '--json').stdout)
        self.assertEqual(len(records), report['transcript']['count'])

    def test_exec_in_an_open_session(self):
        options = {'project': GLib.Variant('s', 'demo'), 'network': GLib.Variant('s', 'none')}
        path = self.daemon.manager().OpenSession('(a{sv})', options)
        session = path.rsplit('/', 1)[1]
        wait_until(lambda: self.daemon.cli_json('show', session)[1]['state'] == 'running', 'the machine', 300)
        payload = bytes(range(256)) * 512
        ran = self.daemon.cli('exec', session, '--', 'sh', '-c', 'cat; printf "\\377" >&2; exit 42', text=False,
                              input=payload)
        self.assertEqual((ran.returncode, ran.stdout == payload, ran.stderr), (42, True, b'\xff'))
        ran = self.daemon.cli('screenshot', session, text=False)
        self.assertTrue(ran.stdout.startswith(b'\x89PNG'), ran.stderr)
        self.assertEqual(self.daemon.cli('stop', session).returncode, 0)


if __name__ == '__main__':
    unittest.main()
