#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real image build through the real daemon on a private bus: build, cancel, freeze, verify, delete.

Needs root, a network path to a Debian mirror and several minutes; BELLJAR_BUILD names the build folder.
"""
import os
import shutil
import subprocess
import tempfile
import time
import unittest

import gi
gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('BELLJAR_BUILD', os.path.join(ROOT, 'build'))
BUILD_DEADLINE_S = 30 * 60
NAME = 'org.belljar1'


def wait_until(what, seconds, probe):
    end = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f'{what} did not happen within {seconds} s')
        time.sleep(0.2)


@unittest.skipUnless(os.geteuid() == 0, 'building an image needs root')
class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = tempfile.mkdtemp(prefix='bji-', dir='/var/tmp')
        os.chmod(cls.state, 0o711)
        cls.dbus = subprocess.Popen(['dbus-daemon', '--session', '--nofork', '--print-address=1'],
                                    stdout=subprocess.PIPE, text=True)
        cls.address = cls.dbus.stdout.readline().strip()
        cls.log = open(os.path.join(cls.state, 'log'), 'w')
        cls.daemon = subprocess.Popen([os.path.join(BUILD, 'daemon', 'belljard'), f'--bus={cls.address}',
                                       f'--state-dir={cls.state}/s', '--auth=owner'], stderr=cls.log)
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        cls.bus = Gio.DBusConnection.new_for_address_sync(cls.address, flags, None, None)
        wait_until('the daemon on the bus', 120, cls.is_there)

    @classmethod
    def tearDownClass(cls):
        cls.bus.close_sync(None)
        cls.daemon.terminate()
        cls.daemon.wait(60)
        cls.dbus.terminate()
        cls.dbus.wait(10)
        cls.dbus.stdout.close()
        cls.log.close()
        shutil.rmtree(cls.state)

    @classmethod
    def is_there(cls):
        reply = cls.bus.call_sync('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus',
                                  'NameHasOwner', GLib.Variant('(s)', (NAME,)), None, 0, 5000, None)
        return reply.unpack()[0]

    def call(self, path, interface, method, args=None):
        return self.bus.call_sync(NAME, path, f'{NAME}.{interface}', method, args, None, 0, 30000, None).unpack()

    def objects(self, interface):
        reply = self.bus.call_sync(NAME, '/org/belljar1', 'org.freedesktop.DBus.ObjectManager', 'GetManagedObjects',
                                   None, None, 0, 30000, None).unpack()[0]
        return {path: faces[f'{NAME}.{interface}'] for path, faces in reply.items() if f'{NAME}.{interface}' in faces}

    def image(self):
        found = [(path, image) for path, image in self.objects('Image').items() if image['Name'] == 'debian']
        return found[0] if found else (None, {'State': 'absent'})

    def run_job(self, job, deadline_s, during=None):
        """Waits for a job's end. Returns: its error's name, empty on success, and its message"""
        def probe():
            if during:
                during(job)
            now = self.objects('Job')[job]
            return now if now['Done'] else None
        end = wait_until('the end of the job', deadline_s, probe)
        return end['Error'], end['Message']

    def build(self, **options):
        variant = GLib.Variant('(sa{sv})', ('debian', options))
        return self.call('/org/belljar1', 'Manager', 'BuildImage', variant)[0]

    def nothing_left(self):
        folder = os.path.join(self.state, 's', 'images', 'debian')
        self.assertFalse(os.path.exists(folder), folder)
        with open('/proc/mounts') as mounts:
            self.assertNotIn(self.state, mounts.read())

    def test_1_cancel_leaves_nothing(self):
        cancelled = []

        def cancel_early(job):
            folder = os.path.join(self.state, 's', 'images', 'debian')
            if not cancelled and os.path.isdir(folder) and any(
                    os.path.isdir(os.path.join(folder, name, 'root', 'var')) for name in os.listdir(folder)):
                cancelled.append(True)
                self.call(job, 'Job', 'Cancel')
        error, _ = self.run_job(self.build(), 600, cancel_early)
        self.assertEqual(cancelled, [True])
        self.assertEqual(error, 'org.belljar1.Error.Cancelled')
        self.nothing_left()

    def test_2_bad_mirror_leaves_nothing(self):
        error, message = self.run_job(self.build(mirror=GLib.Variant('s', 'http://127.0.0.1:9/debian')), 600)
        self.assertTrue(error)
        self.assertTrue(message)
        self.nothing_left()

    def test_3_build_freeze_verify_delete(self):
        error, message = self.run_job(self.build(freeze=GLib.Variant('b', False)), BUILD_DEADLINE_S)
        self.assertEqual(error, '', message)
        path, image = self.image()
        self.assertEqual((image['State'], image['Version'], image['Digest']), ('unfrozen', 1, ''))
        for method, state in (('Freeze', 'frozen'), ('Verify', 'frozen')):
            error, message = self.run_job(self.call(path, 'Image', method)[0], 300)
            self.assertEqual(error, '', message)
            self.assertEqual(self.image()[1]['State'], state)
        self.assertRegex(self.image()[1]['Digest'], '^sha256:[0-9a-f]{64}$')
        folder = os.path.join(self.state, 's', 'images', 'debian', '1')
        self.assertEqual(os.stat(os.path.join(folder, 'disk.qcow2')).st_mode & 0o7777, 0o444)
        self.assertTrue(os.stat(folder).st_mode & 0o001)
        self.assertTrue(os.stat(os.path.dirname(folder)).st_mode & 0o001)
        self.assertEqual(sorted(os.listdir(folder)), ['build.log', 'disk.qcow2', 'image.ini', 'initrd', 'vmlinuz'])
        self.call(path, 'Image', 'Delete')
        self.nothing_left()


if __name__ == '__main__':
    unittest.main()
