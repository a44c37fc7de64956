# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile or unlucky guest can do, in a real machine. One machine serves most of it: each trouble must leave it usable."""
import hashlib
import os
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

GROWTH_MIB = 30  # of a daemon with sanitizers or without; the bench has the exact figure


def rss_mib(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS')) // 1024


class Commands(SessionCase):
    """belljar exec against one machine with a project."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.import_project('trouble', {'a.txt': 'a\n'})
        case.doCleanups()
        cls.session = case.open_session(project='trouble')
        cls.addClassCleanup(cls.daemon.cli, 'stop', cls.session)

    def runTest(self):
        """Lets setUpClass make an instance."""

    def tearDown(self):
        ran = self.execute(self.session, 'echo', 'alive')
        self.assertEqual((ran.returncode, ran.stdout), (0, b'alive\n'), ran.stderr)

    def run_command(self, script, **options):
        return self.execute(self.session, 'bash', '-c', script, **options)

    def test_bytes_pass_untouched(self):
        ran = self.run_command(r"printf '\000\001\377\n\r\033[31m'; printf 'err\000\376' >&2; exit 42")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (42, b'\0\1\xff\n\r\x1b[31m', b'err\0\xfe'))

    def test_random_bytes(self):
        ran = self.run_command('head -c 3000000 /dev/urandom >/tmp/r; cat /tmp/r; sha256sum /tmp/r | cut -d" " -f1 >&2')
        self.assertEqual(hashlib.sha256(ran.stdout).hexdigest(), ran.stderr.decode().strip())

    def test_signal(self):
        self.assertEqual(self.run_command('kill -SEGV $$').returncode, 128 + 11)

    def test_standard_input(self):
        data = os.urandom(300000)
        ran = self.daemon.cli('exec', self.session, '--', 'sha256sum', text=False, input=data)
        self.assertEqual(ran.stdout.split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_folder_and_user(self):
        self.assertEqual(self.execute(self.session, 'pwd', cwd='/work/trouble').stdout, b'/work/trouble\n')
        ran = self.execute(self.session, 'id', '-un', user='check')
        self.assertEqual(ran.stdout, b'check\n')
        ran = self.execute(self.session, 'pwd', cwd='/nowhere')
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(b'/nowhere', ran.stderr)

    def test_never_ends(self):
        ran = self.daemon.cli('exec', '--timeout', '3', self.session, '--', 'bash', '-c',
                              'sleep 4321 & setsid sleep 4321 & (setsid setsid sleep 4321 &); trap "" TERM; '
                              'while :; do sleep 1; done', text=False)
        self.assertNotEqual(ran.returncode, 0)
        left = self.run_command('pgrep -fx "sleep 4321"').stdout
        self.assertEqual(left, b'', 'the whole tree is gone')

    def wait_no_bomb(self):
        """A thousand processes that were killed need a while to die. The console has a shell too, which is no bomb."""
        ran = self.execute(self.session, 'sh', '-c', 'i=0; while pgrep -f "bomb[(]" >/dev/null && [ $i -lt 600 ]; do i=$((i+1)); '
                           'sleep 0.1; done; pgrep -cf "bomb[(]"')
        self.assertEqual(ran.stdout, b'0\n')

    def test_fork_bomb(self):
        """It ends with its time, and all of it."""
        answer = self.capped(b'bash', b'-c', b'bomb() { bomb | bomb & }; bomb; sleep 4322', timeout=20)
        self.assertIs(answer[3]['timed-out'], True, answer)
        self.wait_no_bomb()

    def test_fork_bomb_left_behind(self):
        """A command that ended may leave something running; the next ones have room to work, and to end it."""
        self.assertEqual(self.run_command('bomb() { bomb | bomb & }; bomb 2>/dev/null').returncode, 0)
        ran = self.run_command('sleep 2; for i in 1 2 3; do (echo $i | cat); done')
        self.assertEqual((ran.returncode, ran.stdout), (0, b'1\n2\n3\n'), ran.stderr)
        self.run_command('own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup); for group in /sys/fs/cgroup/belljar-*; do '
                         '[ $group = $own ] || echo 1 >$group/cgroup.kill; done')
        self.wait_no_bomb()

    def test_background_child_holds_the_pipe(self):
        ran = self.run_command('sleep 30 & echo done', timeout=25)
        self.assertEqual((ran.returncode, ran.stdout), (0, b'done\n'))

    def test_much_output_with_flat_memory(self):
        """Streams 64 MiB, and a GiB through the capped call."""
        before = rss_mib(self.daemon.process.pid)
        with open(os.devnull, 'wb') as sink:
            process = self.daemon.popen_cli('exec', self.session, '--', 'head', '-c', '67108864', '/dev/zero', stdout=sink)
            self.assertEqual(process.wait(600), 0)
        answer = self.capped(b'head', b'-c', b'1073741824', b'/dev/zero')
        self.assertEqual(answer[0], 0)
        self.assertEqual(answer[3]['stdout-bytes'], 1 << 30)
        self.assertIs(answer[3]['truncated'], True)
        self.assertLess(len(answer[1]), 1 << 20)
        self.assertLess(rss_mib(self.daemon.process.pid) - before, GROWTH_MIB)

    def test_one_line_of_100_mb(self):
        answer = self.capped(b'bash', b'-c', b'head -c 100000000 /dev/zero | tr "\\0" x')
        self.assertEqual((answer[0], answer[3]['stdout-bytes']), (0, 100000000))
        self.assertTrue(bytes(answer[1]).startswith(b'xxxx'))

    def capped(self, *argv, timeout=600):
        from gi.repository import Gio, GLib
        answer = self.daemon.connection.call_sync(
            'org.belljar1', f'/org/belljar1/sessions/{self.session}', 'org.belljar1.Session', 'Exec',
            GLib.Variant('(aaya{sv})', (list(argv), {'timeout': GLib.Variant('u', timeout)})), None, Gio.DBusCallFlags.NONE,
            900000, None)
        return answer.unpack()

    def test_disk_full(self):
        ran = self.run_command('fallocate -l $(($(df --output=avail -B1M / | tail -1) - 20))M /fill; '
                               'dd if=/dev/zero of=/more bs=1M 2>&1; echo "rest: $?"; rm -f /fill /more', timeout=300)
        self.assertIn(b'No space left', ran.stdout)

    def test_agent_killed(self):
        self.run_command('pkill -KILL qemu-ga', timeout=60)

    def test_agent_stopped_for_a_while(self):
        """A command waits for an agent that comes back."""
        self.run_command('(sleep 1; pkill -STOP qemu-ga; sleep 8; pkill -CONT qemu-ga) >/dev/null 2>&1 & sleep 0.1')
        self.run_command('sleep 3; true', timeout=120)

    def test_channel_killed(self):
        self.run_command('pkill -KILL -x belljar-lane', timeout=60)

    def test_channel_stopped_for_a_while(self):
        self.run_command('(sleep 1; pkill -STOP -x belljar-lane; sleep 8; pkill -CONT -x belljar-lane) >/dev/null 2>&1 & sleep 0.1')
        self.run_command('sleep 3; true', timeout=120)

    def test_second_session_on_the_project_is_busy(self):
        ran = self.daemon.cli('task', 'x [scenario default]', '--project', 'trouble')
        self.assertEqual(ran.returncode, 1)
        self.assertIn('trouble', ran.stderr)


class Endings(SessionCase):
    """Machines that end by themselves, and what their sessions left."""

    scenarios = {
        'poweroff': [turn(call('write_file', path='made.txt', content='kept\n')),
                     turn(call('run', command='sync; poweroff -ff')), turn(call('run', command='echo still there')),
                     turn(call('run', command='echo still there')), turn(call('run', command='echo still there'))],
        'freeze': [turn(call('write_file', path='made.txt', content='kept\n')),
                   turn(call('run', command='echo 0 >/proc/sys/kernel/sysrq; (sleep 1; pkill -STOP "qemu-ga|belljar-lane") & sleep 0.1'))]
                  + [turn(call('run', command='sleep 2; echo still there'))] * 6,
    }

    def test_agent_frozen_for_good(self):
        """The report names the layer that failed; another session does not notice."""
        self.import_project('frozen', {'a.txt': 'a\n'})
        ran = self.daemon.cli_json('task', 'Do it [scenario freeze]', '--project', 'frozen', '--detach')
        other = self.open_session()
        self.assertEqual(self.execute(other, 'echo', 'here').stdout, b'here\n')
        self.stop(other)
        self.wait_state(ran[1]['session'], 'failed', seconds=300)
        code, report = self.daemon.cli_json('report', ran[1]['session'])
        self.assertEqual((code, report['outcome'], report['error']['name']),
                         (1, 'FAILED', 'org.belljar1.Error.GuestUnreachable'), report)
        self.assertIn('agent', report['error']['message'])
        self.assertEqual([change['path'] for change in report['files_changed']], ['made.txt'])

    def test_power_off(self):
        """The report says that the machine was gone; what it had written is committed."""
        self.import_project('off', {'a.txt': 'a\n'})
        code, report = self.task('poweroff', '--project', 'off', '--check', 'true')
        self.assertEqual((code, report['outcome']), (1, 'FAILED'), report)
        self.assertIn('GuestUnreachable', report['error']['name'])
        self.assertEqual(report['check']['verdict'], 'failed')
        self.assertEqual([change['path'] for change in report['files_changed']], ['made.txt'])
        self.assertTrue(report['commit'])

    def test_hostile_folder(self):
        """Whatever a guest leaves in the folder: nothing outside is followed, read or executed, and the report names what is out."""
        self.import_project('odd', {'a.txt': 'a\n'})
        session = self.open_session(project='odd')
        script = (
            'cd /work/odd && mkdir -p .git/hooks sub/.git && echo "[core] fsmonitor=touch /tmp/owned" >.git/config && '
            'printf "#!/bin/sh\\ntouch /tmp/owned\\n" >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && '
            'ln -s /etc/shadow shadow && ln -s / root && ln -s loop loop && mkfifo pipe && '
            'printf x >"$(printf "new\\nline")" && printf x >"$(printf "bad\\377name")" && '
            'printf "*.txt filter=evil\\n" >.gitattributes && cp /bin/true suid && chmod 4755 suid && chown check a.txt && '
            'su check -s /bin/sh -c "true" && for i in $(seq 1000); do echo $i >many-$i; done; sync')
        ran = self.execute(session, 'bash', '-c', script)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.stop(session)
        code, report = self.daemon.cli_json('report', session)
        self.assertIn(code, (0, 5), report)
        self.assertTrue(any('pipe' in warning for warning in report['warnings']), report['warnings'])
        self.assertTrue(any('.git' in warning for warning in report['warnings']), report['warnings'])
        self.assertFalse(os.path.exists('/tmp/owned'))
        work = os.path.join(self.daemon.state_dir, 'projects', 'odd', 'work')
        self.assertFalse(os.path.lexists(os.path.join(work, '.git')))
        for name in os.listdir(os.fsencode(work)):
            info = os.lstat(os.path.join(os.fsencode(work), name))
            self.assertEqual(info.st_uid, os.getuid(), name)
            self.assertFalse(info.st_mode & 0o6000, name)
        names = {change['path'] for change in report['files_changed']}
        self.assertIn('shadow', names)
        self.assertNotIn('pipe', names)


if __name__ == '__main__':
    unittest.main(verbosity=2)
