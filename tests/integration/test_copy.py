# SPDX-License-Identifier: GPL-3.0-or-later
"""belljar copy: trees with odd names in and out, what a hostile guest sends, what breaks off, and commands beside a large copy."""
import contextlib
import io
import os
import pty
import select
import signal
import subprocess
import tarfile
import tempfile
import threading
import unittest

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402  pylint: disable=wrong-import-position

import belljar_test as bt  # noqa: E402  pylint: disable=wrong-import-position
import sessions  # noqa: E402  pylint: disable=wrong-import-position

UNPACK = os.path.join(bt.BUILD, 'helpers', 'belljar-unpack')
MIB, BULK_MIB, MANY = 1 << 20, 64, 5000
LINK, HARD = {'type': tarfile.SYMTYPE}, {'type': tarfile.LNKTYPE}


def archive(*members, form=tarfile.GNU_FORMAT):
    """Each member: name, content, and what is different from an ordinary file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=form) as tar:
        for name, content, *more in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            for key, value in (more[0] if more else {}).items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def tree(folder):
    """Everything in it: path to what it is. Times and owners do not count."""
    found = {}
    for path, folders, files in os.walk(os.fsencode(folder)):
        for name in folders + files:
            whole = os.path.join(path, name)
            info = os.lstat(whole)
            content = b''
            if os.path.islink(whole):
                content = os.readlink(whole)
            elif name in files:
                with open(whole, 'rb') as file:
                    content = file.read()
            found[os.path.relpath(whole, os.fsencode(folder))] = (oct(info.st_mode), content)
    return found


def write(path, content=b''):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as out:
        out.write(content)
    return path


class Unpack(unittest.TestCase):
    """The program that reads archives, alone."""

    def setUp(self):
        self.top = self.enterContext(tempfile.TemporaryDirectory(prefix='bj-unpack-'))
        self.canary = write(os.path.join(self.top, 'canary'), b'safe')
        self.folder = os.path.join(self.top, 'in')
        os.mkdir(self.folder)

    def unpack(self, data):
        ran = subprocess.run([UNPACK], input=data, cwd=self.folder, capture_output=True, timeout=60, check=False)
        with open(self.canary, 'rb') as file:
            self.assertEqual(file.read(), b'safe')
        self.assertEqual(sorted(os.listdir(self.top)), ['canary', 'in'])
        self.assertEqual(os.lstat(self.canary).st_nlink, 1)
        return ran

    def refuse(self, data, words):
        ran = self.unpack(data)
        self.assertEqual((ran.returncode, ran.stdout), (1, b''), ran.stderr)
        self.assertIn(words, ran.stderr)

    def test_leads_out(self):
        evil = os.path.join(self.top, 'evil')
        for data in (archive((evil, b'x')), archive(('a/../../canary', b'x')), archive(('..', b'x')),
                     archive(('h', b'', {**HARD, 'linkname': '../canary'})), archive(('h', b'', {**HARD, 'linkname': self.canary}))):
            self.refuse(data, b'leads out of what was asked for')

    def test_through_links(self):
        for target in ('..', self.top):
            self.refuse(archive(('a', b'', {**LINK, 'linkname': target}), ('a/canary', b'x')), b'through symlink')
        self.refuse(archive(('b', b'', {**LINK, 'linkname': '..'}), ('h', b'', {**HARD, 'linkname': 'b/canary'})), b'through symlink')

    def test_replaced_link(self):
        """A file with the name of a link takes its place; it is not written through it."""
        ran = self.unpack(archive(('a', b'', {**LINK, 'linkname': '../canary'}), ('a', b'x')))
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(tree(self.folder), {b'a': (oct(0o100644), b'x')})

    def test_special(self):
        ran = self.unpack(archive(('d', b'', {'type': tarfile.CHRTYPE, 'devmajor': 1, 'devminor': 3}),
                                  ('p', b'', {'type': tarfile.FIFOTYPE}), ('s', b'x', {'mode': 0o6755, 'uid': 12345}),
                                  ('a', b'', {**LINK, 'linkname': '/etc/passwd'}), ('l', b'', {**LINK, 'linkname': 's'})))
        self.assertEqual((ran.returncode, ran.stdout), (0, b'2 1 d'), ran.stderr)
        self.assertEqual(sorted(tree(self.folder)), [b'a', b'l', b's'])
        info = os.lstat(os.path.join(self.folder, 's'))
        self.assertEqual((oct(info.st_mode), info.st_uid), (oct(0o100755), os.getuid()))

    def test_cut_off(self):
        whole = archive(('f', b'x' * 100000))
        self.refuse(whole[:50000], b'cut off')
        for rubbish in (b'', b'x' * 5000, b'PK\3\4' + bytes(5000)):
            self.refuse(rubbish, b'cut off or none')


class Copy(sessions.SessionCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        cls.session = case.open_session(network='none')
        cls.addClassCleanup(case.stop, cls.session)

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix='bj-copy-', dir=bt.places()[0]))

    def here(self, *names):
        return os.path.join(self.folder, *names)

    def there(self, path):
        return f'{self.session}:{path}'

    def copy(self, source, destination, code=0, **options):
        """Returns what it complained with."""
        ran = self.daemon.cli('copy', source, destination, text=False, cwd=self.folder, **options)
        self.assertEqual(ran.returncode, code, ran.stderr)
        self.assertEqual(ran.stdout, b'')
        return ran.stderr.decode()

    def guest(self, script, *args):
        ran = self.execute(self.session, 'sh', '-c', script, 'sh', *args)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def assert_nothing_left(self):
        self.assertEqual(self.guest('find / -xdev -name ".belljar-copy-*"'), b'')
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith('.belljar')], [])

    def make_odd(self, top):
        for name in (b'-rf', b'sp ace', b'new\nline', b'\xff\xfe', b'$(id)', b"it's", b'*', b'a:b', 'ä€'.encode()):
            write(os.path.join(os.fsencode(top), name, name), name)
        write(os.path.join(top, 'void'))
        os.makedirs(os.path.join(top, 'empty', 'empty'))
        os.symlink('-rf', os.path.join(top, 'link'))
        os.symlink('nowhere', os.path.join(top, 'dangling'))
        os.link(os.path.join(top, '-rf', '-rf'), os.path.join(top, 'hard'))
        for name, mode in (('private', 0o600), ('program', 0o755), ('readable', 0o444)):
            os.chmod(write(os.path.join(top, name), b'x'), mode)
        write(os.path.join(top, 'locked', 'file'), b'x')
        os.chmod(os.path.join(top, 'locked'), 0o555)
        return tree(top)

    def test_odd_tree(self):
        """In and out again is what it was, byte by byte; setuid is not taken along."""
        expected = self.make_odd(self.here('-source'))
        os.chmod(self.here('-source', 'program'), 0o4755)
        self.copy('./-source', self.there('/srv/odd/deep/'))
        listed = self.guest('cd /srv/odd/deep/-source && find . -mindepth 1 -print0 && stat -c %u-%h hard')
        paths, facts = listed[:-1].rsplit(b'\0', 1)
        self.assertEqual({path[2:] for path in paths.split(b'\0')}, set(expected))
        self.assertEqual(facts, b'0-2')
        self.assertEqual(self.copy(self.there('/srv/odd/deep/-source'), 'back/to/here'), '')
        self.assertEqual(tree(self.here('back', 'to', 'here')), expected)
        self.assertEqual(os.stat(self.here('back', 'to', 'here', 'hard')).st_nlink, 2)
        self.assert_nothing_left()

    def test_many(self):
        for i in range(MANY):
            write(self.here('many', f'{i // 100}', f'{i}'), str(i).encode())
        self.copy('many', self.there('/srv'))
        self.copy(self.there('/srv/many'), 'out')
        self.assertEqual(tree(self.here('out')), tree(self.here('many')))

    def test_where_it_goes(self):
        """The same both ways."""
        write(self.here('file'), b'new')
        write(self.here('tree', 'a', 'new'), b'new')
        self.guest('mkdir -p /srv/w/tree/a /srv/w/side; cd /srv/w; echo old >old; echo kept >tree/a/old; ln -s /srv/w/side link')
        self.copy('file', self.there('/srv/w/old'))          # replaced
        self.copy('file', self.there('/srv/w/new'))          # becomes
        self.copy('file', self.there('/srv/w/made/folder/'))  # into, made
        self.copy('file', self.there('/srv/w/link'))         # into what a link of the person's says
        self.copy('tree', self.there('/srv/w'))              # added to
        self.copy('tree/.', self.there('/srv/w/contents'))
        self.copy(self.there('/srv/w'), '.')
        self.assertEqual({path.decode(): content for path, (mode, content) in tree(self.here('w')).items() if mode == oct(0o100644)},
                         {'old': b'new', 'new': b'new', 'made/folder/file': b'new', 'side/file': b'new', 'tree/a/old': b'kept\n',
                          'tree/a/new': b'new', 'contents/a/new': b'new'})
        write(self.here('w', 'tree', 'mine'), b'mine')
        os.unlink(self.here('w', 'tree', 'a', 'new'))
        self.copy(self.there('/srv/w/tree'), 'w')
        self.assertEqual(sorted(tree(self.here('w', 'tree'))), [b'a', b'a/new', b'a/old', b'mine'])
        self.copy(self.there('/srv/w/tree/.'), 'w/contents')
        self.assertEqual(sorted(tree(self.here('w', 'contents'))), [b'a', b'a/new', b'a/old'])
        self.assert_nothing_left()

    def test_errors(self):
        """Each names the thing, and leaves nothing."""
        write(self.here('file'), b'x')
        for names in ('z', 'a', 'zz', 'b/c'):
            write(self.here('tree', names), b'x')
        write(self.here('taken', 'file', 'x'), b'x')
        self.guest('mkdir -p /srv/e/tree/z; cd /srv/e; for name in file tree/y tree/zzz; do echo x >$name; done')
        before = tree(self.folder), self.guest('find /srv/e | sort')
        for source, destination, words in (
                (self.there('/srv/no'), '.', '/srv/no'), ('no', self.there('/srv/e'), '“no”: No such file'),
                (self.there('/srv/e/file'), '/proc/x/', 'Writing into “/proc'), ('file', self.there('/proc/x/'), '/proc'),
                (self.there('/srv/e/file'), 'file/x', 'Writing into “file”: Not a directory'),
                ('file', self.there('/srv/e/file/x'), '/srv/e/file is no folder'),
                (self.there('/srv/e/tree'), '.', '“z” is there already and no folder'),
                (self.there('/srv/e/file'), 'taken', 'is a folder: a file cannot replace it'),
                ('tree', self.there('/srv/e'), '/srv/e/tree/z is in the way'),
                (self.there('/srv/e/tree'), 'file', 'no folder'), ('tree', self.there('/srv/e/file'), 'annot overwrite'),
                ('zz22:/x', '.', 'zz22')):
            self.assertIn(words, self.copy(source, destination, 1))
        for source, destination in (('a', 'b'), (self.there('/a'), self.there('/b')), (self.there(''), '.'), ('./a:b', '.')):
            self.copy(source, destination, 2)
        self.assertEqual((tree(self.folder), self.guest('find /srv/e | sort')), before)
        self.assert_nothing_left()

    @contextlib.contextmanager
    def other_tar(self, script, data=b''):
        """The guest has a tar of its own, which finds @data in /srv/lie."""
        ran = self.daemon.cli('exec', self.session, '--', 'sh', '-c', 'cat >/srv/lie', text=False, input=data)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.guest('printf "#!/bin/sh\n%s\n" "$1" >/usr/local/sbin/tar; chmod 755 /usr/local/sbin/tar', script)
        try:
            yield
        finally:
            self.guest('rm /usr/local/sbin/tar')

    def lying_tar(self, data):
        return self.other_tar('cat /srv/lie', data)

    def test_hostile_guest(self):
        """What was not asked for does not arrive, and what is there from before is not followed."""
        outside = write(self.here('outside', 'file'), b'safe')
        os.makedirs(self.here('got'))
        os.symlink('../outside', self.here('got', 'x'))  # as an earlier copy may have left it
        escape = '\x1b]0;evil\x07'
        for data, words in ((archive(('./x/file', b'evil'), ('./y', b'evil')), 'nobody asked for'),
                            (archive(('./y', b'evil')), 'nobody asked for'), (archive(('../outside/file', b'evil')), 'leads out'),
                            (archive(('./x/file', b'evil')), 'no folder'), (archive((f'/{escape}', b'evil')), '\\x1b]0;evil\\x07'),
                            (archive(('./x/file', b'evil' * 1000))[:2000], 'cut off')):
            with self.lying_tar(data):
                complaint = self.copy(self.there('/srv/x'), 'got', 1)
            self.assertIn(words, complaint)
            self.assertNotIn('\x1b', complaint)
        self.assertEqual(tree(self.here('outside')), {b'file': (oct(0o100644), b'safe')})
        self.assertEqual(os.listdir(self.here('got')), ['x'])
        with open(outside, 'rb') as file:
            self.assertEqual(file.read(), b'safe')
        with self.lying_tar(archive(('./z', b'', {'type': tarfile.DIRTYPE, 'mode': 0o755}), ('./z/p', b'', {'type': tarfile.FIFOTYPE}),
                                    ('./z/l', b'', {**LINK, 'linkname': '/etc/passwd'}))):
            complaint = self.copy(self.there('/srv/z'), 'got')
        self.assertIn('left out 1 device, pipe or socket: ./z/p', complaint)
        self.assertIn('1 symbolic link leads out', complaint)

    def start_shown(self, *args):
        """On a terminal. Returns the process, the terminal, and what was shown once bytes flowed."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = self.daemon.popen_cli('copy', *args, cwd=self.folder, stderr=theirs)
        os.close(theirs)
        shown = b''
        while b'B/s' not in shown:
            self.assertTrue(select.select([ours], [], [], 120)[0], shown)
            shown += os.read(ours, 65536)
        return process, ours, shown

    def read_rest(self, terminal):
        """Until nobody has it open any more, which is an error to read."""
        shown = b''
        with contextlib.suppress(OSError):
            while data := os.read(terminal, 65536):
                shown += data
        return shown

    def test_interrupted(self):
        """In the middle, in both directions: the guest's tar takes its time."""
        write(self.here('big'), os.urandom(8 * MIB))
        self.guest('mkdir -p /srv/i; head -c 8M /dev/urandom >/srv/i/big')
        for number, args, slow in (
                (signal.SIGINT, ('big', self.there('/srv/i/new')), '(head -c 2M; sleep 2; cat) | /usr/bin/tar "$@"'),
                (signal.SIGTERM, (self.there('/srv/i/big'), 'new'), '/usr/bin/tar "$@" | (head -c 2M; sleep 2; cat)')):
            with self.other_tar(slow):
                process, terminal, shown = self.start_shown(*args)
                self.assertIn(b'copying', shown)
                process.send_signal(number)
                rest = self.read_rest(terminal)
                self.assertEqual(process.wait(60), 1, rest)
            self.assertIn(b'Interrupted: nothing was copied', rest)
        self.assertEqual(self.guest('ls -A /srv/i'), b'big\n')
        self.assertEqual(os.listdir(self.folder), ['big'])
        self.assert_nothing_left()

    def run_beside(self, *args):
        """A copy, and one command after the other as long as it goes on. Returns how many came back."""
        codes, over = [], threading.Event()
        connection = self.daemon.bus.connect()

        def work():
            while not over.is_set():
                answer = connection.call_sync('org.belljar1', f'/org/belljar1/sessions/{self.session}', 'org.belljar1.Session', 'Exec',
                                              GLib.Variant('(aaya{sv})', ([b'/bin/true'], {})), None, Gio.DBusCallFlags.NONE,
                                              600000, None)
                codes.append(answer.unpack()[0])
        thread = threading.Thread(target=work)
        thread.start()
        try:
            self.copy(*args)
        finally:
            over.set()
            thread.join(120)
            connection.close_sync(None)
        self.assertFalse(thread.is_alive(), 'a command did not come back')
        self.assertEqual(set(codes), {0})
        return len(codes)

    def test_bulk(self):
        """128 MiB altogether, and commands beside it come back all the while."""
        with open(self.here('big'), 'wb') as out:
            for _ in range(BULK_MIB):
                out.write(os.urandom(MIB))
        beside = self.run_beside('big', self.there('/srv/bulk'))
        beside_out = self.run_beside(self.there('/srv/bulk'), 'back')
        self.assertEqual(bt.digest_file(self.here('back')), bt.digest_file(self.here('big')))
        self.assertGreater(min(beside, beside_out), 3)


if __name__ == '__main__':
    unittest.main()
