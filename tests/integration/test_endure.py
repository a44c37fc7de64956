# SPDX-License-Identifier: GPL-3.0-or-later
"""A daemon that has run for long, one whose files were damaged, and one that wakes up after a power cut."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn


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


if __name__ == '__main__':
    unittest.main(verbosity=2)
