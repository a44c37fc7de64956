# SPDX-License-Identifier: GPL-3.0-or-later
"""belljard killed in every state of a session, and started again: nothing is left, nothing is lost, and the person is told."""
import glob
import json
import os
import shutil
import subprocess
import tempfile
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn


class Killed(SessionCase):
    scenarios = {
        'work': [turn(call('write_file', path='made.txt', content='kept\n')), turn(call('run', command='sleep 600'))],
        'quick': [turn(call('write_file', path='made.txt', content='kept\n')), finish()],
    }

    def start(self, scenario, project, *options):
        self.import_project(project, {'a.txt': 'a\n'})
        ran = self.daemon.cli('task', f'Do it [scenario {scenario}]', '--project', project, '--detach', '--json', *options)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return json.loads(ran.stdout)['session']

    def crash(self):
        self.daemon.kill()
        self.daemon.start()

    def check_settled(self, session):
        self.assertEqual(self.state(session), 'failed')
        code, report = self.daemon.cli_json('report', session)
        self.assertEqual((code, report['outcome']), (1, 'FAILED'), report)
        self.assertIn('belljard', report['error']['message'])
        bt.wait_until(lambda: not self.machines(), 'machines to be gone', 60)
        ran = self.daemon.cli('report', session, '--verify')
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        self.assertEqual(os.listdir(os.path.join(self.daemon.state_dir, 'sessions', session)), ['evidence'])
        return report

    def machines(self):
        return [line for line in self.daemon.leftovers.processes()
                if 'qemu-system' in line or 'virtiofsd' in line or 'belljar-agent' in line]

    def test_starting(self):
        session = self.start('work', 'starting')
        bt.wait_until(self.machines, 'a machine', 120)
        self.crash()
        self.check_settled(session)

    def test_running(self):
        session = self.start('work', 'running')
        self.wait_state(session, 'running')
        made = os.path.join(self.daemon.state_dir, 'projects', 'running', 'work', 'made.txt')
        bt.wait_until(lambda: os.path.exists(made), 'the file', 120)
        self.crash()
        report = self.check_settled(session)
        self.assertEqual([change['path'] for change in report['files_changed']], ['made.txt'])
        self.assertTrue(report['commit'], 'what it had written is committed')

    def test_paused(self):
        session = self.start('work', 'paused')
        self.wait_state(session, 'running')
        self.assertEqual(self.daemon.cli('pause', session).returncode, 0)
        self.crash()
        self.check_settled(session)

    def test_verifying(self):
        session = self.start('quick', 'verifying', '--check', 'sleep 600')
        self.wait_state(session, 'verifying')
        self.crash()
        self.check_settled(session)

    def test_finished_stays_finished(self):
        session = self.start('quick', 'finished')
        self.wait_state(session, 'finished')
        self.crash()
        self.assertEqual(self.state(session), 'finished')
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)


class Probing(SessionCase):
    """The first machine of a state folder: libvirt asks QEMU for its abilities, for seconds, in processes of its own."""

    def probes(self):
        return [line for line in self.daemon.leftovers.processes() if '-machine none' in line]

    def folders(self):
        return glob.glob(os.path.join(self.daemon.state_dir, 'engine', 'lib', 'qemu', 'qmp-*'))

    def forget_answers(self):
        """Tests share what libvirt once found out; here it has to ask."""
        self.daemon.end()
        shutil.rmtree(os.path.join(self.daemon.state_dir, bt.CAPABILITIES))
        self.daemon.start()

    def test_killed_meanwhile(self):
        self.forget_answers()
        session = self.daemon.manager().OpenSession('(a{sv})', {})
        bt.wait_until(self.probes, 'libvirt to ask QEMU', 120)
        self.daemon.kill()
        self.assertTrue(self.probes(), 'it goes on alone')
        # Its number may be somebody else's by now.
        folder = os.path.join(self.daemon.state_dir, 'engine', 'lib', 'qemu', 'qmp-other')
        with subprocess.Popen(['sleep', '300']) as other:
            self.addCleanup(other.kill)
            os.makedirs(folder)
            with open(os.path.join(folder, 'qmp.pid'), 'w', encoding='ascii') as out:
                out.write(f'{other.pid}\n')
            self.daemon.start()
            self.assertEqual(self.probes() + self.folders(), [])
            self.assertIn('asked QEMU for its abilities', self.daemon.log())
            self.assertIsNone(other.poll())
            other.kill()
        self.assertEqual(self.state(session), 'failed')
        self.stop(self.open_session())


class Kept(SessionCase):
    """[sessions] on-stop=keep: an open session's machine lives on while belljard is restarted."""

    config = '[sessions]\non-stop=keep\n'

    def test_adopted(self):
        self.import_project('kept', {'a.txt': 'a\n'})
        session = self.open_session(project='kept')
        self.assertEqual(self.execute(session, 'sh', '-c', 'echo mark >/run/mark').returncode, 0)
        self.daemon.end()
        self.daemon.start()
        self.assertEqual(self.state(session), 'running')
        self.assertEqual(self.execute(session, 'cat', '/run/mark').stdout, b'mark\n')
        self.daemon.kill()
        self.daemon.start()
        ran = self.execute(session, 'sh', '-c', 'cat /run/mark; echo new >/work/kept/new.txt')
        self.assertEqual(ran.stdout, b'mark\n')
        self.stop(session)
        code, report = self.daemon.cli_json('report', session)
        self.assertEqual(report['outcome'], 'DONE', report)
        self.assertEqual([change['path'] for change in report['files_changed']], ['new.txt'])


class Start(unittest.TestCase):
    """Images that may not be used, and a state folder that is in use."""

    def refuse(self, daemon, word):
        ran = daemon.cli('task', 'x', '--model', 'replay')
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertIn(word, ran.stderr)

    def test_no_image(self):
        with bt.Daemon(image=None, config='[model]\nname=replay\n') as daemon:
            self.refuse(daemon, 'belljar image build')

    def test_changed_image(self):
        with bt.Daemon(config='[model]\nname=replay\n') as daemon:
            disk = os.path.join(daemon.state_dir, 'images', 'debian', '1', 'disk.qcow2')
            copy = disk + '.copy'
            with open(disk, 'rb') as source, open(copy, 'wb') as target:
                target.write(source.read())
            os.replace(copy, disk)
            self.refuse(daemon, 'debian')
            code, images = daemon.cli_json('images')
            self.assertEqual((code, images[0]['state']), (0, 'broken'))

    def test_second_daemon(self):
        """Neither a second one on the same bus, nor one on another bus with the same folder."""
        with bt.Daemon(image=None) as daemon, tempfile.TemporaryDirectory(prefix='bj-bus-') as folder:
            other = bt.Bus(folder)
            self.addCleanup(other.close)
            for bus, word in ((daemon.bus, 'org.belljar1'), (other, daemon.state_dir)):
                ran = subprocess.run([bt.DAEMON, f'--bus={bus.address}', '--auth=owner', f'--state-dir={daemon.state_dir}'],
                                     capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(ran.returncode, 1)
                self.assertIn(word, ran.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
