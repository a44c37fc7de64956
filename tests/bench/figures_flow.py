# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of what flows: a stream of output, files on the share, a commit."""
import contextlib
import json
import os
import select
import shutil
import threading
import time

from gi.repository import Gio, GLib

import peers
from basis import CALL_MS, EXEC_S, OVER, Basis, execute_in, measure
from sessions import PROJECTS
from table import Row

MB = 1000000
READ = 1 << 18
STREAM_S = 600

# In the guest: N files of 1 kB, written, then read with nothing in the guest's cache. Prints the seconds of both.
TOUCH_FILES = '''
import json, os, shutil, sys, time
top, number = sys.argv[1], int(sys.argv[2])
os.mkdir(top)
begun = time.monotonic()
for i in range(number):
    with open(f'{top}/{i}', 'wb') as out:
        out.write(b'x' * 1000)
wrote = time.monotonic() - begun
os.sync()
with open('/proc/sys/vm/drop_caches', 'w') as out:
    out.write('3')
begun = time.monotonic()
for i in range(number):
    with open(f'{top}/{i}', 'rb') as file:
        file.read()
print(json.dumps([wrote, time.monotonic() - begun]))
shutil.rmtree(top)
'''


class FlowFigures(Basis):
    def call_exec(self, argv, out, answers):
        """Session.Exec with standard output in a pipe."""
        fds = Gio.UnixFDList.new()
        options = {'timeout': GLib.Variant('u', EXEC_S), 'stdout': GLib.Variant('h', fds.append(out))}
        arguments = GLib.Variant('(aaya{sv})', ([word.encode() for word in argv], options))
        path = f'/org/belljar1/sessions/{self.session}'
        answer, _none = self.daemon.connection.call_with_unix_fd_list_sync(
            'org.belljar1', path, 'org.belljar1.Session', 'Exec', arguments, None, Gio.DBusCallFlags.NONE, CALL_MS, fds, None)
        answers.append(answer.unpack())

    def stream(self, size):
        """Returns the seconds until the first byte is there and until the command has ended, with @size bytes."""
        answers, got, first = [], 0, None
        ends = os.pipe()
        try:
            caller = threading.Thread(target=self.call_exec, args=(('/usr/bin/head', '-c', str(size), '/dev/zero'), ends[1], answers))
            begun = time.monotonic()
            caller.start()
            while got < size and time.monotonic() < begun + STREAM_S:
                if select.select([ends[0]], [], [], 1)[0]:
                    got += len(os.read(ends[0], READ))
                    first = first or time.monotonic() - begun
                elif not caller.is_alive():
                    break
            caller.join()
            whole = time.monotonic() - begun
        finally:
            for end in ends:
                os.close(end)
        if got != size or not answers or answers[0][0] != 0:
            raise AssertionError(f'{got} of {size} bytes came; Exec answered {answers}')
        return first, whole

    def figure_stream(self):
        """Through Session.Exec into a pipe, in turns with the raw lane."""
        self.settle()
        size = self.choose(100, 20) * MB
        firsts, ours, raw, growth = [], [], [], []

        def stream():
            first, whole = self.stream(size)
            firsts.append(first)
            ours.append(size / MB / whole)
        for _ in range(self.choose(8, 1)):
            growth.append(self.grow(stream))
            took = measure(lambda: self.plain.lane('bulk').execute('/usr/bin/head', '-c', str(size), '/dev/zero', mode='stream'))
            raw.append(size / MB / took)
        return [Row(f'stream: {size // MB} MB', 'MB/s', ours, raw, 'raw lane'),
                Row('stream: its first byte', 'ms', firsts, at_most=0.25),
                Row('stream: growth of belljard', 'MiB', growth, at_most=5)]

    def figure_share(self):
        """Small files on the share and on the guest's disk, by the same program in the same machine."""
        self.release()
        project, _took = self.import_folder(os.path.join(PROJECTS, 'fix-bug'))
        number = self.choose(500, 100)
        found = {f'/work/{project}/bench-files': [], '/var/tmp/bench-files': []}
        session = self.person.open_session(network='none', project=project)
        try:
            for _ in range(self.choose(8, 1)):
                for top, times in found.items():
                    answer = execute_in(self.daemon.connection, session, '/usr/bin/python3', '-c', TOUCH_FILES, top, str(number))
                    if answer[0] != 0:
                        raise AssertionError(f'files in {top}: exit {answer[0]}, {bytes(answer[2])}')
                    times.append(json.loads(bytes(answer[1])))
        finally:
            self.person.stop(session)
        share, disk = found.values()
        return [Row(f'share: {what} {number} files of 1 kB', 's', [pair[i] for pair in share], [pair[i] for pair in disk],
                    'the guest\'s own disk') for i, what in enumerate(('write', 'read'))]

    def time_commit(self, files, project):
        """A session gets the files and is stopped. Returns the seconds from Stop to the commit, and the commit's own."""
        session = self.person.open_session(network='none', project=project)
        shutil.copytree(files, os.path.join(self.daemon.state_dir, 'projects', project, 'work', 'files'))
        stopped = time.time()
        self.person.stop(session)
        self.person.wait_state(session, *OVER)
        commit = self.seen(session, 'commit')
        if not commit:
            raise AssertionError(f'{session} has no commit: {self.report(session)}')
        return commit[-1]['at'] - stopped, self.report(session)['timing']['commit']

    def figure_commit(self):
        """The files of a session that is stopped: share taken back, tree, commit."""
        self.release()
        whole, part, git, git_part = [], [], [], []
        number = self.choose(2000, 300)
        with contextlib.ExitStack() as stack:
            folder = self.make_folder(stack, number)
            for i in range(self.choose(8, 1)):
                project, _took = self.import_folder(os.path.join(PROJECTS, 'fix-bug'))
                ours = self.time_commit(os.path.join(folder, 'files'), project)
                copy = os.path.join(folder, f'copy-{i}')
                peers.copy_folder(os.path.join(folder, 'files'), copy)
                added, committed = peers.commit_tree(copy)
                whole.append(ours[0])
                part.append(ours[1])
                git.append(added + committed)
                git_part.append(committed)
        return [Row(f'commit: {number} files, since Stop', 's', whole, git, 'git add -A, commit'),
                Row(f'commit: {number} files, the commit alone', 's', part, git_part, 'git commit')]
