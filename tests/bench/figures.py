# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures: each is a method of Bench that returns rows. Ours and the peer are measured in turns, so that both see the same host."""
import contextlib
import functools
import glob
import json
import os
import random
import shutil
import subprocess
import tempfile
import time

from gi.repository import Gio, GLib

import belljar_test as bt
import peers
from sessions import PROJECTS, SessionCase
from table import Row

CALL_MS, EXEC_S, BUILD_S, STREAM_S = 2000000, 1800, 1800, 1800
OVER = ('finished', 'failed', 'cancelled')
CHECK = 'python3 -m unittest -q test_wordcount'
IDLE_PAUSE_S, BUSY_PAUSE_S = 5, 2
MIB = 1 << 20
REBUILT = 'bj-session-run.c.o'  # in the middle of the daemon: its programs and tests are linked again


class Person(SessionCase):
    """The sessions' helpers, for a daemon that is there already."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon = daemon


def read_rss_mib(pid, field='VmRSS'):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ':')) / 1024


def measure(function, *args):
    begun = time.monotonic()
    function(*args)
    return time.monotonic() - begun


class Bench:
    """short: few runs and small amounts, to see that everything works"""

    def __init__(self, short):
        self.short, self.project = short, 0
        self.stack, self.machines = contextlib.ExitStack(), contextlib.ExitStack()

    def names(self):
        """In the order they run: the first ones want a host without machines."""
        return ['build', 'idle', 'dbus-idle', 'overlay', 'ready', 'exec', 'output', 'dbus-busy', 'import', 'tree', 'task']

    def run(self, name):
        try:
            return getattr(self, 'figure_' + name.replace('-', '_'))()
        except Exception as error:
            if 'daemon' in self.__dict__:
                error.add_note(f'belljard said:\n{self.daemon.log()[-3000:]}')
            with contextlib.suppress(Exception):  # the next figure starts with new machines
                self.release()
            raise

    def choose(self, whole, short):
        return short if self.short else whole

    # What the figures share

    @functools.cached_property
    def daemon(self):
        model = bt.Replay('fix-bug')
        self.stack.callback(model.close)
        daemon = self.stack.enter_context(bt.Daemon(model=model))
        self.stack.callback(self.release)
        return daemon

    @functools.cached_property
    def person(self):
        return Person(self.daemon)

    def accelerator(self):
        """kvm or tcg; empty when no daemon was started."""
        if 'daemon' not in self.__dict__:
            return ''
        value = self.daemon.manager().get_cached_property('Accelerator')
        return value.unpack() if value is not None else ''

    @functools.cached_property
    def session(self):
        """A session that stays open, for several figures."""
        session = self.person.open_session(network='none')
        self.machines.callback(self.person.stop, session)
        return session

    @functools.cached_property
    def plain(self):
        return self.machines.enter_context(self.boot_plain())

    def boot_plain(self):
        _ = self.person  # the daemon has found out what the host can do
        return contextlib.closing(peers.PlainMachine(self.accelerator() == 'kvm'))

    def release(self):
        """Ends the open session and the plain machine."""
        for name in ('session', 'plain'):
            self.__dict__.pop(name, None)
        self.machines.close()

    def report(self, session):
        """The report so far; nothing before there is a transcript."""
        path = f'/org/belljar1/sessions/{session}'
        try:
            answer = self.daemon.connection.call_sync('org.belljar1', path, 'org.belljar1.Session', 'Report', None, None,
                                                      Gio.DBusCallFlags.NONE, CALL_MS, None)
        except GLib.Error:
            return {}
        return json.loads(answer.unpack()[0])

    def time_phase(self, phase, **options):
        """Opens a session, ends it as soon as @phase is over. Returns the seconds of the phase."""
        typed = {key: GLib.Variant('s', value) for key, value in {'network': 'none', **options}.items()}
        path = self.daemon.manager().OpenSession('(a{sv})', typed)
        session = path.rsplit('/', 1)[1]
        bt.wait_until(lambda: phase in self.report(session).get('timing', {}) or self.person.state(session) in OVER,
                      f'the phase {phase} of {session}', bt.START_S)
        found = self.report(session)
        if phase not in found['timing']:
            raise AssertionError(f'{session} has no phase {phase}: {found["error"]}')
        with contextlib.suppress(AssertionError):  # it may have ended by itself meanwhile
            self.person.stop(session)
        self.person.wait_state(session, *OVER)
        return found['timing'][phase]

    def execute(self, connection, *argv):
        """Session.Exec. Returns the exit code, both outputs and the facts."""
        arguments = GLib.Variant('(aaya{sv})', ([word.encode() for word in argv], {'timeout': GLib.Variant('u', EXEC_S)}))
        answer = connection.call_sync('org.belljar1', f'/org/belljar1/sessions/{self.session}', 'org.belljar1.Session', 'Exec',
                                      arguments, None, Gio.DBusCallFlags.NONE, CALL_MS, None)
        return answer.unpack()

    def settle(self):
        """Ready is early in a guest's start: waits until both guests are done with it."""
        wait = ('/usr/bin/systemctl', 'is-system-running', '--wait')
        self.execute(self.daemon.connection, *wait)
        self.plain.agent.execute(*wait)

    def make_folder(self, stack):
        """Files of 1 kB, a hundred a folder. Returns the folder and the number of files."""
        folder = tempfile.mkdtemp(prefix='bj-files-', dir=bt.places()[0])
        stack.callback(shutil.rmtree, folder)
        content, number = random.Random(1), self.choose(10000, 500)
        for i in range(number):
            path = os.path.join(folder, 'files', f'{i // 100:03}')
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, f'{i:05}.txt'), 'w', encoding='ascii') as out:
                out.write(content.randbytes(512).hex())
        return folder, number

    def import_folder(self, folder):
        """Returns the new project's name and the seconds it took."""
        self.project += 1
        name = f'bench-{self.project}'
        return name, measure(self.person.import_folder, name, folder)

    # The figures

    def figure_build(self):
        """One source of the daemon is compiled again, and what it is part of linked; against ninja that has nothing to do."""
        environ = {**os.environ, 'CCACHE_DISABLE': '1'}
        found = glob.glob(os.path.join(bt.BUILD, '**', '*' + REBUILT), recursive=True)
        if not found:
            raise AssertionError(f'{bt.BUILD} has no object *{REBUILT}: build it first')
        ninja = ['ninja', '-C', bt.BUILD]
        ours, peer = [], []
        subprocess.run(ninja, env=environ, capture_output=True, timeout=BUILD_S, check=True)
        for _ in range(self.choose(3, 1)):
            for path in found:
                os.unlink(path)
            ours.append(peers.run_tool(ninja, env=environ))
            peer.append(peers.run_tool(ninja, env=environ))
        return [Row('build: incremental', 's', ours, peer, 'ninja, nothing to do', at_most=10)]

    def figure_idle(self):
        ours, peer = [], []
        for _ in range(self.choose(3, 1)):
            with bt.Daemon() as daemon:
                time.sleep(IDLE_PAUSE_S)
                ours.append(read_rss_mib(daemon.process.pid))
                peer.append(read_rss_mib(daemon.bus.process.pid))
        return [Row('idle: RSS of belljard', 'MiB', ours, peer, 'dbus-daemon', at_most=30)]

    def time_calls(self, connection, name):
        """GetAll of the manager against Ping of the same process, in turns."""
        def get_all():
            connection.call_sync('org.belljar1', '/org/belljar1', 'org.freedesktop.DBus.Properties', 'GetAll',
                                 GLib.Variant('(s)', ('org.belljar1.Manager',)), None, Gio.DBusCallFlags.NONE, CALL_MS, None)

        def ping():
            connection.call_sync('org.belljar1', '/org/belljar1', 'org.freedesktop.DBus.Peer', 'Ping', None, None,
                                 Gio.DBusCallFlags.NONE, CALL_MS, None)
        get_all()
        ping()
        pairs = [(measure(get_all), measure(ping)) for _ in range(self.choose(200, 20))]
        ours, peer = zip(*pairs)
        return [Row(f'{name}: GetAll p{part * 100:.0f}', 'ms', ours, peer, f'Peer.Ping p{part * 100:.0f}', part=part)
                for part in (0.5, 0.99)]

    def figure_dbus_idle(self):
        self.release()
        return self.time_calls(self.daemon.connection, 'dbus-idle')

    def figure_dbus_busy(self):
        """While a guest's processor is busy. The command ends with the connection of its caller."""
        _ = self.session
        caller = self.daemon.bus.connect()
        arguments = GLib.Variant('(aaya{sv})', ([b'/bin/sh', b'-c', b'while :; do :; done'], {}))
        caller.call('org.belljar1', f'/org/belljar1/sessions/{self.session}', 'org.belljar1.Session', 'Exec', arguments, None,
                    Gio.DBusCallFlags.NONE, CALL_MS, None, None)
        try:
            time.sleep(BUSY_PAUSE_S)
            return self.time_calls(self.daemon.connection, 'dbus-busy')
        finally:
            caller.close_sync(None)

    def figure_overlay(self):
        """The session's folder and its overlay, as the report says."""
        self.release()
        ours, peer = [], []
        base = os.path.realpath(os.path.join(self.daemon.state_dir, 'images', 'debian', '1', 'disk.qcow2'))
        with tempfile.TemporaryDirectory(prefix='bj-overlay-', dir=bt.places()[0]) as folder:
            for i in range(self.choose(8, 2)):
                ours.append(self.time_phase('overlay'))
                peer.append(peers.make_overlay(base, os.path.join(folder, f'{i}.qcow2')))
        return [Row('overlay', 'ms', ours, peer, 'qemu-img create -b', at_most=0.05)]

    def figure_ready(self):
        """Booted alone, one after the other. Of the last pair both stay for later figures."""
        self.release()
        ours, whole, peer = [], [], []
        rounds = self.choose(3, 1)
        for i in range(rounds):
            peer.append(self.plain.boot_s)
            if i < rounds - 1:
                self.release()
            with self.plain.frozen() if i == rounds - 1 else contextlib.nullcontext():
                timing = self.report(self.session)['timing']
            ours.append(timing['ready'])
            whole.append(timing['queue'] + timing['overlay'] + timing['ready'])
            if i < rounds - 1:
                self.release()
        return [Row('ready: start to answer', 's', ours, peer, 'plain QEMU, agent answers'),
                Row('ready: since OpenSession', 's', whole, peer, 'plain QEMU, agent answers', at_most=9)]

    def figure_exec(self):
        self.settle()
        triples = []
        for _ in range(self.choose(33, 8)):
            triples.append((measure(self.execute, self.daemon.connection, '/bin/true'),
                            measure(self.plain.agent.execute, '/bin/true'),
                            measure(self.plain.lane('control').execute, '/bin/true')))
        ours, agent, lane = zip(*triples[3:])  # the first ones warm all up
        return [Row('exec: round trip', 'ms', ours, agent, 'bare guest agent, 2 ms polls', at_most_ratio=1.3),
                Row('exec: round trip', 'ms', ours, lane, 'raw lane', at_most=0.1),
                Row('exec: added to the raw lane', 'ms', [mine - raw for mine, raw in zip(ours, lane)], at_most=0.02)]

    def grow(self, function, *args):
        """By how much the daemon's memory grew at the highest, in MiB."""
        pid = self.daemon.process.pid
        before = read_rss_mib(pid)
        with open(f'/proc/{pid}/clear_refs', 'w', encoding='ascii') as out:
            out.write('5')  # its highest so far counts from now on
        function(*args)
        return max(read_rss_mib(pid, 'VmHWM') - before, 0)

    def figure_output(self):
        """Memory does not follow the amount; streams against the raw lane."""
        capped, streamed = self.choose((1024, 100), (64, 16))

        def print_much():
            answer = self.execute(self.daemon.connection, '/usr/bin/head', '-c', str(capped * MIB), '/dev/zero')
            if answer[0] != 0 or answer[3]['stdout-bytes'] != capped * MIB:
                raise AssertionError(f'exit {answer[0]}, {answer[3]}')

        def stream(size, count):
            process = self.daemon.popen_cli('exec', self.session, '--', 'head', '-c', str(size), '/dev/zero',
                                            stdout=subprocess.PIPE)
            begun = time.monotonic()
            first, got = process.stdout.read1(1), 1
            first_s = time.monotonic() - begun
            while data := process.stdout.read1(MIB):
                got += len(data)
            if process.wait(STREAM_S) != 0 or got != size or not first:
                raise AssertionError(f'belljar exec ended with {process.returncode} after {got} bytes')
            count.append((first_s, time.monotonic() - begun))
        _ = self.session, self.plain
        firsts, whole = [], []
        for _ in range(self.choose(9, 2)):
            stream(1, firsts)
        rows = [Row(f'output: {capped} MiB capped, growth', 'MiB', [self.grow(print_much)], at_most=10),
                Row(f'output: {streamed} MiB streamed, growth', 'MiB', [self.grow(stream, streamed * MIB, whole)], at_most=5)]
        raw = measure(lambda: self.plain.lane('bulk').execute('/usr/bin/head', '-c', str(streamed * MIB), '/dev/zero',
                                                              mode='stream'))
        return rows + [Row(f'output: {streamed} MiB streamed', 's', [whole[0][1]], [raw], 'raw lane'),
                       Row('output: first byte, command started', 'ms', [first for first, _ in firsts], at_most=0.25)]

    def figure_import(self):
        self.release()
        ours, peer = [], []
        with contextlib.ExitStack() as stack:
            folder, number = self.make_folder(stack)
            _ = self.person
            for i in range(self.choose(3, 1)):
                peer.append(peers.copy_folder(os.path.join(folder, 'files'), os.path.join(folder, f'copy-{i}')))
                ours.append(self.import_folder(os.path.join(folder, 'files'))[1])
        return [Row(f'import: {number} files of 1 kB', 's', ours, peer, 'cp -a')]

    def figure_tree(self):
        """What a session of a fresh project does before its machine starts: ownership, tree, commit."""
        self.release()
        ours, peer = [], []
        with contextlib.ExitStack() as stack:
            folder, number = self.make_folder(stack)
            for i in range(self.choose(3, 1)):
                copy = os.path.join(folder, f'copy-{i}')
                peers.copy_folder(os.path.join(folder, 'files'), copy)
                peer.append(peers.write_tree(copy))
                name, _took = self.import_folder(os.path.join(folder, 'files'))
                ours.append(self.time_phase('queue', project=name))
        return [Row(f'tree: {number} files of 1 kB', 's', ours, peer, 'git add -A, write-tree')]

    def read_model_time(self, session):
        path = os.path.join(self.daemon.state_dir, 'sessions', session, 'evidence', 'transcript.jsonl')
        with open(path, encoding='utf-8') as file:
            records = [json.loads(line) for line in file]
        return sum(record['data']['duration_s'] for record in records if (record['by'], record['type']) == ('seen', 'model'))

    def figure_task(self):
        """No peer: a whole task, and what of it is not Belljar's: the model's turns (a replay) and the commands in the guest."""
        self.release()
        whole, part, verify = [], [], []
        for _ in range(self.choose(3, 1)):
            name, _took = self.import_folder(os.path.join(PROJECTS, 'fix-bug'))
            begun = time.monotonic()
            code, report = self.daemon.cli_json('task', 'Fix the word count', '--project', name, '--check', CHECK,
                                                '--network', 'none')
            whole.append(time.monotonic() - begun)
            if (code, report['check']['verdict']) != (0, 'proved'):
                raise AssertionError(f'the task ended with {code}: {report}')
            part.append(sum(command['duration_s'] for command in report['commands']) + self.read_model_time(report['session']))
            verify.append(report['timing']['verify'])
        return [Row('task: fix-bug, until proved', 's', whole), Row('task: its commands and model', 's', part),
                Row('task: its verification', 's', verify)]
