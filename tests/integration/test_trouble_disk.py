# SPDX-License-Identifier: GPL-3.0-or-later
"""A state folder that cannot be written, a host's disk that is nearly full, and one that fills up under a running machine."""
import contextlib
import os
import shutil
import subprocess
import tempfile
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

DISK_MIB, NEEDED_MIB = 1800, 1024
MIB = 1 << 20
WHOLE = 'while systemctl -q is-active fill; do sleep 1; done; test $(stat -c %s /fill) = 209715200 && echo whole >>whole.txt'


class SmallDisk(bt.Daemon):
    """A daemon whose state folder is a small disk of its own. The image stays where it is: it may not be copied."""

    def link_image(self):
        super().link_image()
        full = self.state_dir + '.full'
        os.rename(self.state_dir, full)
        os.mkdir(self.state_dir, 0o711)
        disk = os.path.join(self.folder, 'disk')
        with open(disk, 'wb') as out:
            out.truncate(DISK_MIB * MIB)
        subprocess.run(['mkfs.ext4', '-q', '-m', '0', '-O', '^has_journal', disk], check=True)
        subprocess.run(['mount', '-o', 'loop', disk, self.state_dir], check=True)
        os.chmod(self.state_dir, 0o711)
        shutil.copy2(os.path.join(full, 'belljar.db'), self.state_dir)
        images = os.path.join(self.state_dir, 'images')
        os.mkdir(images, 0o711)
        subprocess.run(['mount', '--bind', os.path.join(full, 'images'), images], check=True)

    def end(self):
        super().end()
        left = self.leftovers.processes() + self.leftovers.files()
        assert not left, f'left behind: {left}\n{self.log()}'
        for folder in (os.path.join(self.state_dir, 'images'), self.state_dir):
            if os.path.ismount(folder):
                subprocess.run(['umount', folder], check=True)
        bt.wait_until(lambda: not self.leftovers.loops(), 'the loop device to be free', 60)

    def free_mib(self):
        fs = os.statvfs(self.state_dir)
        return fs.f_bavail * fs.f_frsize // MIB

    @contextlib.contextmanager
    def filled(self, left_mib):
        """Only @left_mib are free meanwhile; 0 is the very last byte."""
        path = os.path.join(self.state_dir, 'ballast')
        with open(path, 'wb', buffering=0) as out:
            try:
                os.posix_fallocate(out.fileno(), 0, (self.free_mib() - left_mib) * MIB)
                yield out
            finally:
                os.unlink(path)
                out.truncate(0)

    @staticmethod
    def fill_up(ballast):
        ballast.seek(0, os.SEEK_END)
        for size in (MIB, 4096):
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(b'x' * size)


class NearlyFull(SessionCase):
    daemon_class = SmallDisk
    scenarios = {
        'work': [turn(call('write_file', path='made.txt', content='kept\n')),
                 turn(call('run', command='systemd-run -q --unit=fill dd if=/dev/urandom of=/fill bs=1M count=200 conv=fsync; sleep 30')),
                 turn(call('run', command=WHOLE)), turn(call('run', command=WHOLE)),
                 finish()],
    }

    def details(self, session):
        return self.proxy(session).Details()

    def wait_stalled(self, session):
        bt.wait_until(lambda: 'free disk space' in self.details(session)['activity'], 'the machine to be stopped', 300)

    def check_in_order(self, session):
        ran = self.daemon.cli('report', session, '--verify')
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    def test_refused(self):
        """Under a GiB no session begins, and what is said names the folder; with room again it does."""
        sessions = os.path.join(self.daemon.state_dir, 'sessions')
        before = os.listdir(sessions)
        with self.daemon.filled(NEEDED_MIB - 20):
            ran = self.daemon.cli('task', 'x [scenario default]')
            self.assertEqual(ran.returncode, 1, ran.stdout)
            self.assertIn(self.daemon.state_dir, ran.stderr)
            self.assertIn(str(NEEDED_MIB), ran.stderr)
            with self.assertRaisesRegex(Exception, 'org.belljar1.Error.NoSpace'):
                self.daemon.manager().OpenSession('(a{sv})', {})
            self.assertEqual(os.listdir(sessions), before)
        self.stop(self.open_session())

    def test_full_under_an_agent(self):
        """Its command may fail with the reason, the next one waits, and nothing that was written is lost."""
        self.import_project('full', {'a.txt': 'a\n'})
        code, task = self.daemon.cli_json('task', 'Do it [scenario work]', '--project', 'full', '--detach')
        self.assertEqual(code, 0, task)
        session = task['session']
        self.wait_state(session, 'running')
        with self.daemon.filled(40) as ballast:
            self.wait_stalled(session)
            self.daemon.fill_up(ballast)
            self.assertEqual(self.state(session), 'running')
        self.wait_state(session, 'finished', seconds=600)
        code, report = self.daemon.cli_json('report', session)
        self.assertEqual(report['outcome'], 'DONE', report)
        self.assertTrue(any(self.daemon.state_dir in warning for warning in report['warnings']), report['warnings'])
        self.assertIn('whole.txt', [change['path'] for change in report['files_changed']])
        self.check_in_order(session)

    def test_full_under_a_person(self):
        """A command that runs and those that come are answered; the machine goes on when there is room."""
        session = self.open_session()
        with self.daemon.filled(40):
            ran = self.execute(session, 'dd', 'if=/dev/urandom', 'of=/fill', 'bs=1M', 'count=200', 'conv=fsync')
            self.assertNotEqual(ran.returncode, 0)
            self.wait_stalled(session)
            ran = self.execute(session, 'true', timeout=60)
            self.assertIn(self.daemon.state_dir, ran.stderr.decode())
            for verb in ('pause', 'resume'):
                self.assertIn('disk is full', self.daemon.cli(verb, session).stderr)
            self.assertEqual(self.daemon.cli('sessions', timeout=60).returncode, 0)
        bt.wait_until(lambda: 'free disk space' not in self.details(session)['activity'], 'the machine to go on', 60)
        ran = self.execute(session, 'sh', '-c', 'cat /fill | wc -c')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.stop(session)
        self.check_in_order(session)

    def test_stopped_while_full(self):
        session = self.open_session()
        with self.daemon.filled(40) as ballast:
            self.execute(session, 'dd', 'if=/dev/urandom', 'of=/fill', 'bs=1M', 'count=200', 'conv=fsync')
            self.wait_stalled(session)
            self.daemon.fill_up(ballast)
            self.stop(session)
        self.check_in_order(session)


class NotWritable(unittest.TestCase):
    def test_read_only(self):
        """Also for root: the whole file system is. The mount goes with the process that sees it."""
        with tempfile.TemporaryDirectory(prefix='bj-') as folder:
            bus = bt.Bus(folder)
            self.addCleanup(bus.close)
            state = os.path.join(folder, 's')
            os.mkdir(state)
            script = 'mount -t tmpfs -o ro,mode=711 none "$1" && shift && exec "$@"'
            argv = [bt.DAEMON, f'--bus={bus.address}', '--auth=owner', f'--state-dir={state}']
            ran = subprocess.run(['unshare', '-m', '--propagation=private', 'sh', '-c', script, 'sh', state, *argv],
                                 capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn(f'The state folder {state} cannot be written', ran.stderr)
            self.assertIn('Read-only file system', ran.stderr)
            self.assertEqual(os.listdir(state), [])

    def test_a_file_is_no_folder(self):
        with tempfile.TemporaryDirectory(prefix='bj-') as folder:
            bus = bt.Bus(folder)
            self.addCleanup(bus.close)
            state = os.path.join(folder, 's')
            with open(state, 'w', encoding='ascii') as out:
                out.write('x')
            ran = subprocess.run([bt.DAEMON, f'--bus={bus.address}', '--auth=owner', f'--state-dir={state}'],
                                 capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn(f'{state} is not a folder', ran.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
