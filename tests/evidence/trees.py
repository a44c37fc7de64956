# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that want other things into the commit than lie in them, and edits of what a check rests on: the real belljar-tree."""
import os
import socket
import subprocess
import threading
import unittest

from agent_parts import spawn_with_fds
from forgeries import BUILD, DEADLINE, FORGE, ForgeryCase, forgery, rows

TREE = os.path.join(BUILD, 'helpers', 'belljar-tree')
SECRET = b'host-secret-4711\n'
EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
as_root = unittest.skipUnless(os.geteuid() == 0, 'only root makes such files')
FIRST, LAST = 1910000000, 1999999999  # uids of guests' files


class Answer:
    """What belljar-tree said: lines of KEY VALUE that end with a line "end"."""

    def __init__(self, ran):
        assert ran.returncode == 0, ran.stderr
        lines = ran.stdout.decode().split('\n')
        assert lines[-2:] == ['end', ''] and 'end' not in lines[:-2], ran.stdout
        self.pairs = [tuple(line.split(' ', 1)) for line in lines[:-2]]

    def all(self, key):
        return [value for name, value in self.pairs if name == key]

    def warned(self, *parts):
        return any(all(part in warning for part in parts) for warning in self.all('warning'))


class TreeCase(ForgeryCase):
    def setUp(self):
        self.top = os.fsencode(self.folder())
        self.work, self.repo = os.path.join(self.top, b'work'), os.path.join(self.top, b'repo.git')
        self.secret = os.path.join(self.top, b'secret')
        os.mkdir(self.work)
        self.put(b'../secret', SECRET)
        subprocess.run(['git', 'init', '-q', '--bare', self.repo], check=True, timeout=DEADLINE)

    def put(self, path, data=b'x\n'):
        full = os.path.join(self.work, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, 'wb') as out:
            out.write(data)

    def call(self, command, *arguments, fds):
        opened = [os.open(path, os.O_RDONLY | os.O_DIRECTORY) for path in fds]
        try:
            process = spawn_with_fds([TREE, command, *arguments], opened, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            out, err = process.communicate(timeout=DEADLINE)
        finally:
            for fd in opened:
                os.close(fd)
        return Answer(subprocess.CompletedProcess(command, process.returncode, out, err))

    def write(self):
        """Returns the answer; self.tree is the tree's id."""
        objects = os.path.join(self.repo, b'objects')
        answer = self.call('write', fds=[self.work, objects, objects])
        self.tree, = answer.all('tree')
        return answer

    def git(self, *arguments):
        return subprocess.run(['git', '-C', self.repo, *arguments], check=True, capture_output=True, timeout=DEADLINE).stdout

    def names(self):
        return set(self.git('ls-tree', '-r', '-z', '--name-only', self.tree).split(b'\0')) - {b''}

    def assert_no_secret(self):
        self.assertNotIn(SECRET.strip(), self.git('cat-file', '--batch-all-objects', '--batch'))

    def show(self, path):
        return self.git('cat-file', 'blob', f'{self.tree}:{path}')


class Folders(TreeCase):
    @forgery('link to a file of the host', 'symbolic links to a file outside, absolute and relative', 'the link itself is committed')
    def test_link(self):
        os.symlink(self.secret, os.path.join(self.work, b'abs'))
        os.symlink(b'../secret', os.path.join(self.work, b'rel'))
        os.symlink(b'/etc/shadow', os.path.join(self.work, b'shadow'))
        self.write()
        self.assertEqual((self.show('abs'), self.show('rel'), self.show('shadow')), (self.secret, b'../secret', b'/etc/shadow'))
        self.assertEqual({line.split()[0] for line in self.git('ls-tree', self.tree).splitlines()}, {b'120000'})
        self.assert_no_secret()

    @forgery('link as a folder', 'a symbolic link to a folder of the host', 'nothing below it is committed')
    def test_link_to_folder(self):
        os.symlink(b'..', os.path.join(self.work, b'up'))
        os.symlink(b'/proc/self/root', os.path.join(self.work, b'root'))
        self.write()
        self.assertEqual(self.names(), {b'up', b'root'})
        self.assert_no_secret()

    @forgery('swapped while it is read', 'a file that becomes a link to the host\'s, and back, all the time', 'never the host\'s file')
    def test_swapped(self):
        over = threading.Event()
        hot, link = os.path.join(self.work, b'hot'), os.path.join(self.top, b'link')

        def swap():
            while not over.is_set():
                self.put(b'../file', b'mine\n')
                os.symlink(self.secret, link)
                os.rename(link, hot)
                os.rename(os.path.join(self.top, b'file'), hot)

        thread = threading.Thread(target=swap)
        thread.start()
        try:
            for _ in range(30):
                self.write()
        finally:
            over.set()
            thread.join()
        self.assert_no_secret()

    @as_root
    @forgery('another\'s file', 'a hard link to a file of another user of the host', 'it stays as it is, and the answer says so')
    def test_hard_link(self):
        os.chmod(self.secret, 0o600)
        os.chown(self.secret, 12345, 12345)
        os.link(self.secret, os.path.join(self.work, b'mine'))
        answer = self.call('own', str(os.getuid()), str(os.getgid()), str(FIRST), str(LAST), fds=[self.work])
        info = os.stat(self.secret)
        self.assertEqual((info.st_uid, info.st_mode & 0o7777), (12345, 0o600))
        self.assertTrue(answer.warned('"mine" belongs to another user'), answer.pairs)

    @as_root
    @forgery('special files', 'a FIFO, a socket and a device where files should be', 'left out at once, each with a warning')
    def test_special(self):
        os.mkfifo(os.path.join(self.work, b'pipe'))
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(os.fsdecode(os.path.join(self.work, b'socket')))
        os.mknod(os.path.join(self.work, b'mem'), 0o20666, os.makedev(1, 1))
        self.put(b'a.txt')
        answer = self.write()
        self.assertEqual(self.names(), {b'a.txt'})
        for name, kind in (('pipe', 'FIFO'), ('socket', 'socket'), ('mem', 'device')):
            self.assertTrue(answer.warned(f'"{name}" was left out', kind), answer.pairs)

    @forgery('git folders', 'names that some file system or git takes for .git', 'never in a tree, each with a warning')
    def test_dot_git(self):
        evil = [b'.git', b'.GIT', b'git~1', b'.git. .', b'.g\xe2\x80\x8cit', b'.git:x']
        for name in evil:
            self.put(name + b'/config', b'[core]\n\tfsmonitor=touch owned\n')
        self.put(b'a.txt')
        answer = self.write()
        self.assertEqual(self.names(), {b'a.txt'})
        self.assertEqual(len(answer.all('warning')), len(evil), answer.pairs)

    @forgery('name of our own', 'a folder called as what Belljar moves aside, so that it is not in the commit', 'left out with a warning')
    def test_aside(self):
        self.put(b'.git-from-guest-7/answer')
        self.put(b'a.txt')
        answer = self.write()
        self.assertEqual(self.names(), {b'a.txt'})
        self.assertTrue(answer.warned('".git-from-guest-7" was left out'), answer.pairs)

    @forgery('answer in a name', 'a FIFO whose name has newlines and the lines of an answer', 'one answer: the name is escaped')
    def test_answer_in_name(self):
        os.mkfifo(os.path.join(self.work, b'x\ntree ' + EMPTY_TREE.encode() + b'\nwarning none\nend'))
        self.put(b'a.txt')
        answer = self.write()
        self.assertEqual(len(answer.all('tree')), 1)
        self.assertNotEqual(self.tree, EMPTY_TREE)
        self.assertTrue(answer.warned('"x%0Atree'), answer.pairs)

    @forgery('entry in a name', 'a file whose name has newlines and the lines of a diff', 'one entry, its name escaped and marked')
    def test_entry_in_name(self):
        self.put(b'x\nentry deleted 0 9 0 tests')
        self.write()
        answer = self.call('diff', '-', self.tree, 'tests/', fds=[os.path.join(self.repo, b'objects')])
        self.assertEqual(answer.all('entry'), ['added 1 0 1 x%0Aentry%20deleted%200%209%200%20tests'])

    @forgery('two names that look alike', 'a name that is no UTF-8 and one that is written like its escaped form', 'told apart by a mark')
    def test_alike(self):
        self.put(b'a\xff')
        self.put(b'a%FF')
        self.write()
        answer = self.call('diff', '-', self.tree, 'tests/', fds=[os.path.join(self.repo, b'objects')])
        self.assertEqual(sorted(entry.split(' ', 3)[3] for entry in answer.all('entry')), ['0 a%FF', '1 a%FF'])

    @forgery('too large to commit', 'a sparse file of two GiB and a file 200 folders deep', 'left out with a warning')
    def test_too_large(self):
        with open(os.path.join(self.work, b'large'), 'wb') as out:
            out.truncate(2 << 30)
        self.put(b'd/' * 200 + b'deep')
        answer = self.write()
        self.assertEqual(self.names(), set())
        self.assertTrue(answer.warned('"large" was left out', '1 GiB'), answer.pairs)
        self.assertTrue(answer.warned('was left out: more than 128 folders deep'), answer.pairs)


class Protected(TreeCase):
    """Edits after which the check passes: they are undone in the tree of the protected run, which then decides (verdicts.py)."""

    def undone(self, command, before, after):
        self.assertEqual(self.compose(command, {'code.txt': 'wrong\n', **before}, {'code.txt': 'right\n', **after}), before)

    def compose(self, command, before, after):
        """Returns what is at the places of before and after in the protected tree, but for the work itself."""
        trees = []
        for files in (before, after):
            subprocess.run(['rm', '-rf', self.work], check=True)
            os.mkdir(self.work)
            for path, text in files.items():
                self.put(path.encode(), text.encode())
            self.write()
            trees.append(self.tree)
        patterns = subprocess.run([FORGE, 'protect', command], check=True, capture_output=True, text=True, timeout=DEADLINE).stdout
        objects = os.path.join(self.repo, b'objects')
        self.tree, = self.call('protect', *trees, *patterns.split('\n')[:-1], fds=[objects, objects]).all('tree')
        self.assertEqual(self.show('code.txt'), b'right\n', 'the work itself stays')
        return {name.decode(): self.show(name.decode()).decode() for name in self.names() - {b'code.txt'}}


RIGHT = 'test:\n\tgrep -q right code.txt\n'
rows(Protected, Protected.undone, [
    ('test edited', 'the test is made to pass', 'as it was in the protected run', 'python3 -m unittest', {'test_a.py': 'assert right'},
     {'test_a.py': 'pass'}),
    ('test removed', 'the test that fails is taken away', 'there again in the protected run', 'pytest', {'tests/a.py': 'fail'}, {}),
    ('Makefile edited', 'its target test is made true', 'as it was in the protected run', 'make test', {'Makefile': RIGHT},
     {'Makefile': 'test:\n\ttrue\n'}),
    ('Makefile overruled', 'a GNUmakefile is laid beside the Makefile', 'gone in the protected run', 'make -s test', {'Makefile': RIGHT},
     {'Makefile': RIGHT, 'GNUmakefile': 'test:\n\ttrue\n'}),
    ('script edited', 'the check\'s own script is made to exit 0', 'as it was in the protected run', 'cd ci && sh ./check.sh',
     {'ci/check.sh': 'exit 1'}, {'ci/check.sh': 'exit 0'}),
    ('runner shadowed', 'a module of the project\'s takes the place of unittest', 'gone in the protected run', 'python3 -m unittest',
     {'test_a.py': 'x'}, {'test_a.py': 'x', 'unittest.py': 'print("OK")', 'unittest/__main__.py': 'pass'}),
    ('conftest added', 'a conftest.py makes every test pass', 'gone in the protected run', 'pytest -q', {'test_a.py': 'x'},
     {'test_a.py': 'x', 'conftest.py': 'skip'}),
    ('settings edited', 'belljar.ini names another check', 'as it was in the protected run', 'make test',
     {'belljar.ini': '[check]\ncommand=make test\n'}, {'belljar.ini': '[check]\ncommand=true\n'}),
    ('built beforehand', 'what make would build lies there, newer than its source', 'gone in the protected run', 'make test',
     {'Makefile': RIGHT}, {'Makefile': RIGHT, 'build/out': 'ok'}),
    ('test as a folder', 'the test\'s script becomes a folder', 'as it was in the protected run', 'sh tests/run.sh',
     {'tests/run.sh': 'exit 1'}, {'tests/run.sh/x': 'exit 0'}),
])
