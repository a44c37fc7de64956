# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that no program of ours makes: too many at once, arguments that are nearly right."""
import os
import subprocess
import unittest

import belljar_test as bt
from gi.repository import Gio, GLib

CALLS = 400


class OddCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(bt.Daemon(image=None, config='[model]\nurl=http://127.0.0.1:1\nname=replay\n'))

    def test_doctor_flood(self):
        """Some are answered, the others refused at once, and nobody waits afterwards."""
        answers, loop = [], GLib.MainLoop()

        def on_answer(connection, result):
            try:
                connection.call_finish(result)
                answers.append('')
            except GLib.Error as error:
                answers.append(Gio.DBusError.get_remote_error(error) or error.message)
            if len(answers) == CALLS:
                loop.quit()

        for _ in range(CALLS):
            self.daemon.connection.call('org.belljar1', '/org/belljar1', 'org.belljar1.Manager', 'Doctor', None, None,
                                        Gio.DBusCallFlags.NONE, 60000, None, on_answer)
        GLib.timeout_add_seconds(120, loop.quit)
        loop.run()
        self.assertEqual(len(answers), CALLS)
        self.assertEqual(set(answers), {'', 'org.belljar1.Error.Limit'})
        self.assertEqual(self.daemon.cli_json('doctor')[0], 1, 'no image, no model, but an answer')

    def test_empty_path(self):
        self.daemon.manager().CreateProject('(sa{sv})', 'empty-path', {})
        for method in ('CopyIn', 'CopyOut'):
            descriptors = Gio.UnixFDList.new()
            folder = os.open(self.daemon.folder, os.O_RDONLY | os.O_DIRECTORY)
            descriptors.append(folder)
            os.close(folder)
            arguments = GLib.Variant('(ha{sv})', (0, {'path': GLib.Variant('ay', [])}))
            with self.subTest(method), self.assertRaises(GLib.Error) as caught:
                self.daemon.connection.call_with_unix_fd_list_sync(
                    'org.belljar1', '/org/belljar1/projects/empty_2dpath', 'org.belljar1.Project', method, arguments, None,
                    Gio.DBusCallFlags.NONE, 30000, descriptors, None)
            self.assertIn('relative path', caught.exception.message)
        self.assertNotIn('assertion', self.daemon.log())


@unittest.skipUnless(os.geteuid() == 0, 'the firewall is root\'s')
class SharedFirewall(unittest.TestCase):
    def has_table(self):
        return subprocess.run(['nft', 'list', 'table', 'inet', 'belljar'], capture_output=True, check=False).returncode == 0

    def test_table_outlives_another_daemon(self):
        """Machines of one daemon keep their firewall when another daemon of the host ends."""
        with bt.Daemon(image=None):
            with bt.Daemon(image=None) as other:
                self.assertTrue(self.has_table())
                other.end()
            self.assertTrue(self.has_table())


if __name__ == '__main__':
    unittest.main()
