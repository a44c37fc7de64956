# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of commands that have no result, that are very long, that are too many, or that come too late."""
import hashlib
import os
import subprocess
import sys
import unittest

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402  pylint: disable=wrong-import-position

import belljar_test as bt  # noqa: E402  pylint: disable=wrong-import-position
import sessions  # noqa: E402  pylint: disable=wrong-import-position

AT_ONCE, WAITING = 4, 64
SERVER = """
import http.server
server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Commands(sessions.SessionCase):
    scenarios = {'kill-all': [sessions.turn(sessions.call('run', command='kill -9 -1')), sessions.finish()]}

    def commands(self, session):
        return self.daemon.cli_json('report', session)[1]['commands']

    def start_exec(self, session, argv, answers):
        """Exec that is not waited for; its answer, or its error, comes into @answers."""
        def answered(connection, result):
            try:
                answers.append(connection.call_finish(result).unpack()[0])
            except GLib.Error as error:
                answers.append(f'{Gio.DBusError.get_remote_error(error)}: {error.message}')
        self.daemon.connection.call('org.belljar1', f'/org/belljar1/sessions/{session}', 'org.belljar1.Session', 'Exec',
                                    GLib.Variant('(aaya{sv})', ([word.encode() for word in argv], {})), None,
                                    Gio.DBusCallFlags.NONE, 600000, None, answered)

    @staticmethod
    def wait_answers(answers, count, seconds=120):
        context = GLib.MainContext.default()

        def there():
            while context.iteration(False):
                pass
            return len(answers) >= count
        bt.wait_until(there, f'{count} answers', seconds)

    def test_lost(self):
        """A command that ends what would answer did run; one that could not be given to the guest did not."""
        _code, report = self.task('kill-all')
        first = report['commands'][0]
        self.assertEqual((first['command'], first['exit'], first['lost']), ('kill -9 -1', None, True), report)
        self.assertTrue(first['failure'])
        self.assertGreater(first['duration_s'], 0)
        text = self.daemon.cli('report', report['session']).stdout
        self.assertIn('no answer', text)
        self.assertNotIn('not run', text)

    def test_long(self):
        """What stands behind the cut is in the digest."""
        session = self.open_session(network='none')
        line = ': ' + 'x' * 60000 + '; exit 3'
        argv = ['sh', '-c', line]
        self.assertEqual(self.execute(session, *argv).returncode, 3)
        whole = f"sh -c '{line}'".encode()
        command = self.commands(session)[0]
        self.assertTrue(command['command_truncated'])
        self.assertEqual(command['command_bytes'], len(whole))
        self.assertEqual(command['command_sha256'], hashlib.sha256(whole).hexdigest())
        self.assertIn('cut here', self.daemon.cli('report', session).stdout)
        self.stop(session)

    def test_paused(self):
        session = self.open_session(network='none')
        self.assertEqual(self.daemon.cli('pause', session).returncode, 0)
        ran = self.execute(session, 'true', timeout=30)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn(b'is paused: resume it first', ran.stderr)
        self.assertEqual(self.daemon.cli('resume', session).returncode, 0)
        self.assertEqual(self.execute(session, 'true').returncode, 0)
        self.stop(session)

    def test_many(self):
        """A few at a time, some wait, the rest is refused at once; who is stopped is told so."""
        session = self.open_session(network='none')
        answers = []
        for _ in range(AT_ONCE + WAITING + 3):
            self.start_exec(session, ['sleep', '600'], answers)
        self.wait_answers(answers, 3)
        self.assertEqual(len(answers), 3, answers)
        for answer in answers:
            self.assertIn('org.belljar1.Error.Limit', answer)
        self.daemon.cli('stop', session)
        self.wait_answers(answers, AT_ONCE + WAITING + 3)
        for answer in answers[3:]:
            self.assertIn('has ended: it was stopped', answer)
        self.wait_state(session, 'finished')

    def test_order(self):
        session = self.open_session(network='none')
        answers = []
        for number in range(30):
            self.start_exec(session, ['sh', '-c', f'exit {number}'], answers)
        self.wait_answers(answers, 30)
        self.assertEqual(sorted(answers), list(range(30)))
        self.stop(session)

    def test_time_is_over(self):
        path = self.daemon.manager().OpenSession('(a{sv})', {'network': GLib.Variant('s', 'none'),
                                                             'wall-clock': GLib.Variant('u', 40)})
        session = path.rsplit('/', 1)[1]
        self.wait_state(path, 'running')
        answers = []
        self.start_exec(session, ['sleep', '600'], answers)
        self.wait_answers(answers, 1)
        self.assertIn('has ended: its time was over', answers[0])
        self.start_exec(session, ['true'], answers)
        self.wait_answers(answers, 2)
        self.assertIn('has ended: its time was over', answers[1])
        self.wait_state(session, 'finished')
        report = self.daemon.cli_json('report', session)[1]
        self.assertEqual(report['outcome'], 'DONE')
        self.assertEqual((report['commands'][0]['lost'], report['commands'][0]['exit']), (True, None))

    def test_stopped_while_checked(self):
        # pylint: disable-next=consider-using-with
        task = self.daemon.popen_cli('task', '--check', 'sleep 600', 'Do it [scenario default]', stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
        self.addCleanup(bt.end_process, task)
        session = bt.wait_until(lambda: next((s['session'] for s in self.daemon.cli_json('sessions')[1] if s['state'] == 'verifying'),
                                             None), 'a session that verifies', 180)
        self.daemon.cli('stop', session)
        task.wait(120)
        report = self.daemon.cli_json('report', session)[1]
        self.assertEqual(report['check']['why'], ['stopped'])
        self.assertEqual(report['outcome'], 'CANCELLED')


class NetworkDaemon(bt.Daemon):
    """In a network namespace of its own, which a test may do anything to."""

    def __enter__(self):
        # pylint: disable-next=consider-using-with
        self.keeper = subprocess.Popen(['unshare', '-n', 'sh', '-c', 'ip link set lo up; echo ready; exec cat'],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        bt.read_line(self.keeper.stdout, 'the namespace')
        self.leftovers.ours.add(self.keeper.pid)
        return super().__enter__()

    def inside(self, *argv):
        return ['nsenter', '-t', str(self.keeper.pid), '-n', *argv]

    def argv(self):
        return self.inside(*super().argv())

    def clean(self):
        super().clean()
        self.keeper.stdin.close()
        self.keeper.wait(30)
        self.keeper.stdout.close()


@unittest.skipUnless(os.geteuid() == 0, 'the firewall is root\'s')
class LostFirewall(unittest.TestCase):
    def reaches_host(self, daemon, session, port):
        return daemon.cli('exec', session, '--', 'curl', '-s', '-m', '5', '-o', '/dev/null', f'http://10.0.2.2:{port}/').returncode == 0

    def test_flushed_while_a_machine_runs(self):
        """It is put back within seconds, and the report says that it was gone."""
        with NetworkDaemon() as daemon:
            with subprocess.Popen(daemon.inside(sys.executable, '-c', SERVER), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  cwd='/var/empty' if os.path.isdir('/var/empty') else '/usr/share/doc') as server:
                self.addCleanup(server.kill)
                port = int(bt.read_line(server.stdout, 'the server'))
                path = daemon.manager().OpenSession('(a{sv})', {'network': GLib.Variant('s', 'internet')})
                session = path.rsplit('/', 1)[1]
                bt.wait_until(lambda: daemon.cli_json('show', session)[1]['state'] == 'running', 'the session to run', 180)
                self.assertFalse(self.reaches_host(daemon, session, port))
                for count, damage in enumerate((('flush', 'ruleset'), ('insert', 'rule', 'inet', 'belljar', 'machines', 'accept')),
                                               start=1):
                    subprocess.run(daemon.inside('nft', *damage), check=True, timeout=30)
                    warnings = bt.wait_until(lambda: self.told(daemon, session, count), 'the firewall to be put back', 60)
                    self.assertEqual(sum('its network cable is unplugged' in w for w in warnings), count, warnings)
                    self.assertFalse(self.reaches_host(daemon, session, port))
                daemon.cli('stop', session)
                bt.wait_until(lambda: daemon.cli_json('show', session)[1]['state'] == 'finished', 'the session to end', 120)
                server.kill()
            daemon.end()

    @staticmethod
    def told(daemon, session, count):
        warnings = daemon.cli_json('report', session)[1]['warnings']
        return warnings if sum('installed and proven again' in w for w in warnings) == count else None


if __name__ == '__main__':
    unittest.main()
