# SPDX-License-Identifier: GPL-3.0-or-later
"""Every method of every object, with arguments of the right type that make no sense, and with arguments of another type."""
import glob
import os
import unittest
import xml.etree.ElementTree as xml

from gi.repository import Gio, GLib

import belljar_test as bt
from sessions import SessionCase, finish

HUGE = 'A' * 300_000
TEXTS = ['', ' ', 'a\nb\x1b[31m\u202e', '../../etc/passwd', HUGE, '/', '%n%s']
BYTES = [b'', b'\0', b'a\0b', b'\xff\xfe', b'-x', b'A' * 300_000]
NUMBERS = {'u': [0, 1, 2**32 - 1], 'i': [-2**31, 0, 2**31 - 1], 't': [0, 2**63, 2**64 - 1], 'b': [False, True]}
ODD_OPTIONS = [{}, {'no-such-option': GLib.Variant('s', 'x')}, {'project': GLib.Variant('u', 7)}, {'timeout': GLib.Variant('s', 'x')},
               {'timeout': GLib.Variant('u', 0)}, {'cwd': GLib.Variant('ay', b'')}, {'path': GLib.Variant('ay', b'../../x')},
               {'stdin': GLib.Variant('h', 9)}, {'status': GLib.Variant('s', 'nonsense')}, {'position': GLib.Variant('u', 2**32 - 1)},
               {'': GLib.Variant('s', '')}, {'x' * 70_000: GLib.Variant('b', True)}]
# These end what the others need: each has its own turn at the end.
ENDINGS = [('Session', 'Stop'), ('Session', 'Delete'), ('Project', 'Delete'), ('Image', 'Delete')]
# What would begin something that takes long for good arguments gets only bad ones.
ONLY_BAD = {('Manager', 'RunTask'), ('Manager', 'OpenSession'), ('Manager', 'BuildImage'), ('Manager', 'Prune'), ('Image', 'Verify'),
            ('Image', 'Freeze')}
NO_ANSWER = ('org.freedesktop.DBus.Error.NoReply', 'org.freedesktop.DBus.Error.Timeout', 'org.freedesktop.DBus.Error.Disconnected')


def read_methods():
    """(interface, method) to the types of its arguments, as the XML says."""
    methods = {}
    for path in glob.glob(os.path.join(bt.ROOT, 'dbus', 'org.belljar1.*.xml')):
        for interface in xml.parse(path).getroot().iter('interface'):
            name = interface.get('name').rsplit('.', 1)[1]
            for method in interface.iter('method'):
                methods[name, method.get('name')] = [arg.get('type') for arg in method.iter('arg') if arg.get('direction') == 'in']
    return {key: types for key, types in methods.items() if key[0] not in ('Agent', 'Gateway')}


def values_of(kind, session):
    if kind in NUMBERS:
        return [GLib.Variant(kind, value) for value in NUMBERS[kind]]
    if kind == 's':
        return [GLib.Variant('s', text) for text in TEXTS]
    if kind == 'o':
        return [GLib.Variant('o', path) for path in ('/', '/org/belljar1', '/org/belljar1/sessions/aaaaaaaa', session)]
    if kind == 'ay':
        return [GLib.Variant('ay', data) for data in BYTES]
    if kind == 'aay':
        return [GLib.Variant('aay', words) for words in ([], [b''], [b'a\0b'], [b'x' * 300_000], [b'/no/such/program'], [b'x'] * 5000)]
    if kind == 'h':
        return [GLib.Variant('h', handle) for handle in (0, 1, -1, 2**31 - 1)]
    assert kind == 'a{sv}', kind
    return [GLib.Variant('a{sv}', options) for options in ODD_OPTIONS]


class EveryMethod(SessionCase):
    scenarios = {'quick': [finish()]}
    config = '[limits]\nwall-clock=600\n'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        code, report = cls.daemon.cli_json('task', 'Do it [scenario quick]', '--project', cls.make_project('ended'))
        assert code == 5, report
        cls.over = f'/org/belljar1/sessions/{report["session"]}'
        cls.live = cls.daemon.manager().OpenSession('(a{sv})', {'project': GLib.Variant('s', cls.make_project('live'))})

    @classmethod
    def make_project(cls, name):
        assert cls.daemon.cli('project', 'create', name).returncode == 0
        return name

    def paths(self, interface):
        return {'Manager': ['/org/belljar1'], 'Image': ['/org/belljar1/images/debian'], 'Session': [self.live, self.over],
                'Project': ['/org/belljar1/projects/live', '/org/belljar1/projects/ended'], 'Job': ['/org/belljar1/jobs/1']}[interface]

    def call(self, path, key, arguments):
        """Returns the error's name, or None."""
        descriptors = Gio.UnixFDList.new()
        with open(os.devnull, 'rb') as null:
            descriptors.append(null.fileno())
        try:
            self.daemon.connection.call_with_unix_fd_list_sync('org.belljar1', path, f'org.belljar1.{key[0]}', key[1], arguments, None,
                                                               Gio.DBusCallFlags.NONE, 60000, descriptors, None)
        except GLib.Error as error:
            return Gio.DBusError.get_remote_error(error) or error.message
        return None

    def check(self, path, key, arguments):
        name = self.call(path, key, arguments)
        self.assertNotIn(name, NO_ANSWER, f'{key} on {path}')
        self.assertIsNone(self.daemon.process.poll(), f'belljard ended at {key} on {path}\n{self.daemon.log()}')
        if name is not None:
            self.assertTrue(name.startswith(('org.belljar1.Error.', 'org.freedesktop.DBus.Error.')), f'{key} on {path}: {name}')
            self.assertNotIn(name, ('org.freedesktop.DBus.Error.Failed', 'org.freedesktop.DBus.Error.NoMemory'))

    def arguments_of(self, types, key):
        """One argument odd at a time, the others plain."""
        plain = {'s': GLib.Variant('s', 'x'), 'o': GLib.Variant('o', self.over), 'u': GLib.Variant('u', 1), 't': GLib.Variant('t', 1),
                 'i': GLib.Variant('i', 1), 'b': GLib.Variant('b', False), 'ay': GLib.Variant('ay', b'x'),
                 'aay': GLib.Variant('aay', [b'true']), 'h': GLib.Variant('h', 0), 'a{sv}': GLib.Variant('a{sv}', ODD_OPTIONS[1])}
        for i, kind in enumerate(types):
            for value in values_of(kind, self.live):
                if key in ONLY_BAD and kind == 'a{sv}' and value.n_children() == 0:
                    continue
                yield GLib.Variant.new_tuple(*[value if j == i else plain[other] for j, other in enumerate(types)])

    def test_every_method(self):
        self.wait_state(self.live, 'running')
        methods = read_methods()
        self.assertGreater(len(methods), 30)
        for key, types in sorted(methods.items(), key=lambda item: (item[0] in ENDINGS, item[0])):
            for path in self.paths(key[0]):
                with self.subTest(method=key, path=path):
                    self.check(path, key, GLib.Variant('(iiiiiii)', (1,) * 7))
                    if types:
                        self.check(path, key, None)
                    for arguments in self.arguments_of(types, key):
                        self.check(path, key, arguments)
                    if not types and key not in ONLY_BAD:
                        self.check(path, key, None)
        self.assertEqual(self.daemon.cli('doctor').returncode, 0)
        for line in self.daemon.log().splitlines():
            self.assertNotIn('assertion', line)
            self.assertNotIn('critical', line.lower())


if __name__ == '__main__':
    unittest.main(verbosity=2)
