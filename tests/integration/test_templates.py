# SPDX-License-Identifier: GPL-3.0-or-later
"""Templates and the pool: what a person gets when a template is there, damaged, missing, of another QEMU, or cannot be made."""
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import time
import unittest

from gi.repository import GLib

import belljar_test as bt
from sessions import SessionCase

OWN_MACHINE_S = 240

# What every machine has for itself: name, id, address, random numbers of the kernel's own, 32 bytes of getrandom.
INDIVIDUAL = ('hostname; cat /etc/machine-id /sys/class/net/eth0/address /proc/sys/kernel/random/uuid; '
              'python3 -c "import os; print(os.getrandom(32).hex())"')


class TemplateCase(unittest.TestCase):
    """A daemon of its own for each test: they damage what others would share."""

    def daemon(self, **options):
        daemon = bt.Daemon(**options)
        self.own_templates(daemon)
        return daemon

    def own_templates(self, daemon):
        """The shared image is linked; here the templates are copied, so that they may be written to."""
        link = daemon.link_image

        def copy():
            link()
            path = os.path.join(daemon.state_dir, 'templates')
            shutil.rmtree(path)
            subprocess.run(['cp', '-a', '--sparse=always', os.path.join(bt.shared_image(), 'templates'), path], check=True)
            self.change(path)
        daemon.link_image = copy

    def change(self, path):
        """What a test does to the templates before belljard starts."""

    def open(self, daemon, **options):
        typed = {key: GLib.Variant('s', value) for key, value in {'network': 'none', **options}.items()}
        return daemon.manager().OpenSession('(a{sv})', typed).rsplit('/', 1)[1]

    def show(self, daemon, session):
        return daemon.cli_json('show', session)[1]

    def wait_running(self, daemon, session):
        bt.wait_until(lambda: self.show(daemon, session)['state'] != 'starting', f'{session} to run', OWN_MACHINE_S)
        self.assertEqual(self.show(daemon, session)['state'], 'running', daemon.log())

    def report(self, daemon, session):
        return daemon.cli_json('report', session)[1]

    def run_one(self, daemon):
        """Opens a session, runs a command in it, ends it. Returns its report."""
        session = self.open(daemon)
        self.wait_running(daemon, session)
        ran = daemon.cli('exec', session, '--', 'cat', '/etc/hostname')
        self.assertEqual((ran.returncode, ran.stdout.strip()), (0, f'belljar-{session}'), ran.stderr)
        return self.end(daemon, session)

    def end(self, daemon, session):
        self.assertEqual(daemon.cli('stop', session).returncode, 0)
        bt.wait_until(lambda: self.show(daemon, session)['state'] == 'finished', f'{session} to end', OWN_MACHINE_S)
        return self.report(daemon, session)

    def templates(self, daemon):
        return sorted(os.listdir(os.path.join(daemon.state_dir, 'templates')))


class CloneTest(TemplateCase):
    def test_clones_are_fresh(self):
        """Two clones of one template share nothing that a machine must have for itself, and never write to what they share."""
        with self.daemon() as daemon:
            disk = glob.glob(os.path.join(daemon.state_dir, 'templates', '*', 'disk.qcow2'))[0]
            before = bt.digest_file(disk)
            machines, seen = [], []
            sessions = [self.open(daemon, network='internet') for _ in range(2)]
            for session in sessions:
                self.wait_running(daemon, session)
                ran = daemon.cli('exec', session, '--', 'sh', '-c', INDIVIDUAL)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                seen.append(ran.stdout.splitlines())
            for session in sessions:
                report = self.end(daemon, session)
                self.assertEqual(report['warnings'], [])
                self.assertEqual([machine['start'] for machine in report['machines']], ['template'])
                self.assertLess(report['machines'][0]['clock_offset_s'], 10)
                self.assertTrue({'overlay', 'clone', 'ready', 'setup', 'first_command'} <= set(report['timing']))
                machines += report['machines']
                self.assertIs(report['machines'][0]['reseeded'], True, 'the kernel noticed its generation id')
            for fact in ('id', 'hostname', 'machine_id', 'mac', 'random', 'uuid'):
                self.assertNotEqual(machines[0][fact], machines[1][fact], fact)
            self.assertEqual(len(seen[0]), 5)
            for first, second in zip(*seen, strict=True):
                self.assertNotEqual(first, second)
            self.assertEqual(bt.digest_file(disk), before)
            self.assertEqual(len(self.templates(daemon)), 1)

    def test_without_templates(self):
        with self.daemon(config='[pool]\ntemplates=false\n') as daemon:
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['cold'])
            self.assertEqual(report['warnings'], [])
            self.assertNotIn('clone', report['timing'])


class DamagedTest(TemplateCase):
    def change(self, path):
        template = os.path.join(path, os.listdir(path)[0])
        self.damage(template)

    def damage(self, template):
        raise NotImplementedError

    def assert_made_anew(self, reason):
        with self.daemon() as daemon:
            before = self.templates(daemon)
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['template'], report['warnings'])
            self.assertEqual(self.templates(daemon), before)
            self.assertIn(reason, daemon.log())
            daemon.end()
            daemon.start()  # and the new one is good
            self.assertEqual([machine['start'] for machine in self.run_one(daemon)['machines']], ['template'])


class RamDamagedTest(DamagedTest):
    def damage(self, template):
        with open(os.path.join(template, 'ram'), 'r+b') as ram:
            ram.seek(50 << 20)
            ram.write(b'not what it was')

    def test_ram(self):
        self.assert_made_anew('/ram is damaged')


class OtherQemuTest(TemplateCase):
    """A template that was made with another QEMU (its key is another one) is of no use and goes."""

    def change(self, path):
        old = os.path.join(path, os.listdir(path)[0])
        other = os.path.join(path, '0' * 32)
        with open(os.path.join(old, 'template.ini'), encoding='utf-8') as file:
            text = re.sub('^key=.*$', 'key=' + '0' * 32, file.read(), flags=re.MULTILINE)
        os.rename(old, other)
        with open(os.path.join(other, 'template.ini'), 'w', encoding='utf-8') as out:
            out.write(text)

    def test_other_qemu(self):
        with self.daemon() as daemon:
            self.assertEqual(self.templates(daemon), ['0' * 32])
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['template'])
            self.assertEqual(len(self.templates(daemon)), 1)
            self.assertNotEqual(self.templates(daemon), ['0' * 32])


class NoRoomTest(TemplateCase):
    """The disk is full while a template is made: a cold boot, with the reason in the report, and nothing is left of it."""

    def change(self, path):
        shutil.rmtree(os.path.join(path, os.listdir(path)[0]))
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=48m,mode=711', 'bj-test', path], check=True)
        self.addCleanup(subprocess.run, ['umount', '-l', path], check=False, stderr=subprocess.DEVNULL)

    @unittest.skipIf(os.getuid() != 0, 'needs root to mount')
    def test_full(self):
        with self.daemon() as daemon:
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['cold'])
            self.assertRegex(' '.join(report['warnings']), 'booted, not cloned: .*No space left')
            self.assertEqual(self.templates(daemon), [])
            checks = {check['name']: check for check in daemon.cli_json('doctor')[1]}
            self.assertFalse(checks['templates']['ok'])
            self.assertIn('No space left', checks['templates']['detail'])
            # Known now: the next session does not try again, and says why.
            begun = time.monotonic()
            again = self.run_one(daemon)
            self.assertRegex(' '.join(again['warnings']), 'booted, not cloned: .*No space left')
            self.assertLess(time.monotonic() - begun, OWN_MACHINE_S)
            daemon.end()
            subprocess.run(['umount', os.path.join(daemon.state_dir, 'templates')], check=True)


class KilledTest(TemplateCase):
    def change(self, path):
        shutil.rmtree(os.path.join(path, os.listdir(path)[0]))

    def test_killed_while_it_makes_one(self):
        """SIGKILL at several moments of capture and clone; the next start leaves nothing of it and the next session works."""
        with self.daemon() as daemon:
            for seconds in (0.5, 4, 9):
                self.open(daemon)
                time.sleep(seconds)
                daemon.kill()
                daemon.start()
                self.assertEqual([name for name in self.templates(daemon) if name.startswith('.new')], [])
                self.assertEqual(bt.machines_of(daemon.state_dir), [])
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['template'], report['warnings'])
            for seconds in (0.2, 0.6, 1.0):
                self.open(daemon)
                time.sleep(seconds)
                daemon.kill()
                daemon.start()
                self.assertEqual(bt.machines_of(daemon.state_dir), [])
            self.assertEqual(len(self.templates(daemon)), 1)


class PoolTest(TemplateCase):
    config = '[pool]\nsize=1\n'

    def stock(self, daemon):
        return [name for name in os.listdir(os.path.join(daemon.state_dir, 'pool'))
                if os.path.exists(os.path.join(daemon.state_dir, 'pool', name, 'overlay.qcow2'))]

    def wait_stock(self, daemon, number):
        bt.wait_until(lambda: len(self.stock(daemon)) == number and len(bt.machines_of(daemon.state_dir)) >= number,
                      f'{number} machines in the pool', OWN_MACHINE_S)

    def test_from_the_pool(self):
        with self.daemon(config=self.config) as daemon:
            self.wait_stock(daemon, 1)
            bt.wait_until(lambda: self.run_one(daemon)['machines'][0]['start'] == 'pool', 'a machine of the pool', OWN_MACHINE_S)
            self.wait_stock(daemon, 1)
            # Killed with one in stock, and with one handed out: nothing stays.
            self.open(daemon)
            time.sleep(1)
            daemon.kill()
            daemon.start()
            self.wait_stock(daemon, 1)
            self.assertEqual(len(bt.machines_of(daemon.state_dir)), 1)

    def test_a_dead_machine_in_stock_is_not_handed_out(self):
        with self.daemon(config=self.config) as daemon:
            self.wait_stock(daemon, 1)
            time.sleep(3)
            for pid in bt.machines_of(daemon.state_dir):
                os.kill(pid, 9)
            report = self.run_one(daemon)
            self.assertEqual([machine['start'] for machine in report['machines']], ['template'])

    def test_image_deleted_while_the_pool_is_full(self):
        with self.daemon(config=self.config) as daemon:
            self.wait_stock(daemon, 1)
            self.assertEqual(daemon.cli('image', 'delete', 'debian', '--force').returncode, 0)
            bt.wait_until(lambda: bt.machines_of(daemon.state_dir) == [] and self.stock(daemon) == [], 'the pool to be empty',
                          OWN_MACHINE_S)


class MemoryTest(SessionCase):
    """Eight starts at once with memory for three: the rest waits, says so, and comes to its turn."""
    config = '[limits]\nsessions=8\nmemory-total-mib=3072\n'

    def activity(self, session):
        return self.daemon.cli_json('show', session)[1]['details'].get('activity', '')

    def places(self, sessions):
        said = [self.activity(session) for session in sessions]
        found = [re.fullmatch(r'waiting for memory, (\d+)(?:st|nd|rd|th) in line: machines have 3072 of 3072 MiB', text) for text in said]
        return sorted(int(match.group(1)) for match in found if match)

    def test_eight_at_once(self):
        options = {'network': GLib.Variant('s', 'none')}
        sessions = [self.daemon.manager().OpenSession('(a{sv})', options).rsplit('/', 1)[1] for _ in range(8)]
        left = list(sessions)
        while left:
            running = []

            def settled():
                running[:] = [session for session in left if self.state(session) == 'running']
                return len(running) == min(3, len(left))
            bt.wait_until(settled, 'three to run', OWN_MACHINE_S)
            waiting = [session for session in left if session not in running]
            # Each says its place, also after those before it have left.
            bt.wait_until(lambda: self.places(waiting) == list(range(1, len(waiting) + 1)), 'places in line', OWN_MACHINE_S)
            self.assertLessEqual(len(bt.machines_of(self.daemon.state_dir)), 3)
            # One that waits can be stopped too.
            for session in running + waiting[:1]:
                self.assertEqual(self.daemon.cli('stop', session).returncode, 0)
                left.remove(session)
        for session in sessions:
            self.wait_state(session, 'finished', 'cancelled')

    def test_never_fits(self):
        options = {'network': GLib.Variant('s', 'none'), 'memory-mib': GLib.Variant('u', 4096)}
        path = self.daemon.manager().OpenSession('(a{sv})', options)
        self.wait_state(path, 'failed')
        report = self.daemon.cli_json('report', path.rsplit('/', 1)[1])[1]
        self.assertIn('4096 MiB is more than all machines may have together, 3072 MiB', report['error']['message'])
