# SPDX-License-Identifier: GPL-3.0-or-later
"""belljar shell on a real terminal, and the machine of a task that failed, kept after its end."""
import os
import pty
import select
import subprocess
import time
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn


class Terminal:
    """belljar shell on a terminal of its own."""

    def __init__(self, daemon, *arguments):
        self.fd, end = pty.openpty()
        self.process = subprocess.Popen([bt.CLI, 'shell', *arguments], stdin=end, stdout=end, stderr=end, env=daemon.environ(),
                                        start_new_session=True)
        os.close(end)
        self.seen = b''

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait(self, text, seconds=120):
        until = time.monotonic() + seconds
        while text.encode() not in self.seen:
            ready = select.select([self.fd], [], [], max(until - time.monotonic(), 0))[0]
            if not ready:
                raise AssertionError(f'{text} did not come; this did: {self.seen!r}')
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError as error:
                raise AssertionError(f'{text} did not come before the end; this did: {self.seen!r}') from error

    def close(self):
        code = self.process.wait(60)
        os.close(self.fd)
        return code


class Shell(SessionCase):
    scenarios = {
        'fail': [turn(call('run', command='echo trace > /root/trace')), finish()],
        'pass': [turn(call('write_file', path='made.txt', content='x')), finish()],
    }
    config = '[limits]\npark-after=60\n'

    def test_shell(self):
        session = self.open_session()
        terminal = Terminal(self.daemon, session)
        terminal.type('tty; stty size; echo $((6*7))is-the-answer\r')
        terminal.wait('/dev/pts/')
        terminal.wait('42is-the-answer')
        terminal.type('sleep 1000\r')
        terminal.wait('sleep 1000')
        time.sleep(0.5)
        terminal.type('\x03')  # to the guest, not to us
        terminal.type('exit 7\r')
        self.assertEqual(terminal.close(), 7)
        ran = self.daemon.cli('shell', session)
        self.assertEqual(ran.returncode, 2)
        self.assertIn('terminal', ran.stderr)
        self.stop(session)

    def test_keep_failed(self):
        """The machine of the work that failed is there, with what was done in it, and goes when it is not wanted any more."""
        self.import_project('fail', {'a.txt': 'a\n'})
        code, report = self.task('fail', '--project', 'fail', '--check', 'echo no; exit 1', '--keep-failed')
        self.assertEqual((code, report['check']['verdict']), (6, 'failed'), report)
        session = report['session']
        terminal = Terminal(self.daemon, session)
        terminal.type('cat /root/trace; exit 3\r')
        terminal.wait('\rtrace\r\n')
        self.assertEqual(terminal.close(), 3)
        bt.wait_until(lambda: b'DOWN' in self.execute(session, 'ip', '-br', 'link', 'show', 'eth0').stdout, 'its cable to be out', 60)
        ran = self.execute(session, 'cat', '/root/trace')
        self.assertEqual((ran.returncode, ran.stdout), (0, b'trace\n'), ran.stderr)
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)
        self.assertEqual(self.daemon.cli('stop', session).returncode, 0)
        bt.wait_until(lambda: not bt.machines_of(self.daemon.state_dir), 'the machine to go', 60)
        ran = self.execute(session, 'true')
        self.assertEqual(ran.returncode, 1)

    def test_passes_and_delete(self):
        """A machine of work that passed is not kept; one that is kept goes with its session."""
        code, report = self.task('pass', '--check', 'test -f made.txt', '--keep-failed')
        self.assertEqual((code, report['check']['verdict']), (0, 'passes'), report)
        bt.wait_until(lambda: not bt.machines_of(self.daemon.state_dir), 'the machine to go', 60)
        code, report = self.task('pass', '--keep-failed')
        self.assertEqual((code, report['check']['verdict']), (5, 'none'), report)
        self.assertTrue(bt.machines_of(self.daemon.state_dir))
        self.proxy(report['session']).Delete()
        self.assertEqual(bt.machines_of(self.daemon.state_dir), [])
        self.assertFalse(os.path.exists(os.path.join(self.daemon.state_dir, 'sessions', report['session'])))


if __name__ == '__main__':
    unittest.main(verbosity=2)
