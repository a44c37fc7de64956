# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures: each is a method of Bench that returns rows. Ours and the peer are measured in turns, so that both see the same host."""
import contextlib
import glob
import os
import subprocess
import tempfile
import time

from gi.repository import Gio, GLib

import belljar_test as bt
import peers
from basis import CALL_MS, measure, read_rss_mib
from figures_copy import CopyFigures
from figures_flow import FlowFigures
from figures_start import StartFigures
from sessions import PROJECTS
from table import Row

BUILD_S, STREAM_S = 1800, 1800
CHECK = 'python3 -m unittest -q test_wordcount'
IDLE_PAUSE_S, BUSY_PAUSE_S = 5, 2
MIB = 1 << 20
REBUILT = 'bj-session-run.c.o'  # in the middle of the daemon: its programs and tests are linked again


class Bench(StartFigures, FlowFigures, CopyFigures):
    """All of them."""

    def names(self):
        """In the order they run: the first ones want a host without machines."""
        return ['build', 'idle', 'dbus-idle', 'overlay', 'start', 'four', 'memory', 'ready', 'exec', 'output', 'stream', 'copy',
                'dbus-busy', 'share', 'import', 'tree', 'commit', 'task']

    def run(self, name):
        try:
            return getattr(self, 'figure_' + name.replace('-', '_'))()
        except Exception as error:
            if 'daemon' in self.__dict__:
                error.add_note(f'belljard said:\n{self.daemon.log()[-3000:]}')
            with contextlib.suppress(Exception):  # the next figure starts with new machines
                self.release()
            raise

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
            for i in range(self.choose(8, 1)):
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
            ours.append(timing.get('clone', 0) + timing['ready'])
            whole.append(sum(timing.get(phase, 0) for phase in ('queue', 'overlay', 'clone', 'ready', 'setup')))
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
        for _ in range(self.choose(9, 1)):
            stream(1, firsts)
        rows = [Row(f'output: {capped} MiB capped, growth', 'MiB', [self.grow(print_much)], at_most=10),
                Row(f'output: {streamed} MiB streamed, growth', 'MiB', [self.grow(stream, streamed * MIB, whole)], at_most=5)]
        raw = measure(lambda: self.plain.lane('bulk').execute('/usr/bin/head', '-c', str(streamed * MIB), '/dev/zero',
                                                              mode='stream'))
        return rows + [Row(f'output: {streamed} MiB streamed', 's', [whole[0][1]], [raw], 'raw lane'),
                       Row('output: first byte, command started', 'ms', [first for first, _ in firsts], at_most=0.25)]

    def figure_import(self):
        self.release()
        ours, peer, number = [], [], self.choose(10000, 200)
        with contextlib.ExitStack() as stack:
            folder = self.make_folder(stack, number)
            _ = self.person
            for i in range(self.choose(3, 1)):
                peer.append(peers.copy_folder(os.path.join(folder, 'files'), os.path.join(folder, f'copy-{i}')))
                ours.append(self.import_folder(os.path.join(folder, 'files'))[1])
        return [Row(f'import: {number} files of 1 kB', 's', ours, peer, 'cp -a')]

    def figure_tree(self):
        """What a session of a fresh project does before its machine starts: ownership, tree, commit."""
        self.release()
        ours, peer, number = [], [], self.choose(10000, 200)
        with contextlib.ExitStack() as stack:
            folder = self.make_folder(stack, number)
            for i in range(self.choose(3, 1)):
                copy = os.path.join(folder, f'copy-{i}')
                peers.copy_folder(os.path.join(folder, 'files'), copy)
                peer.append(peers.write_tree(copy))
                name, _took = self.import_folder(os.path.join(folder, 'files'))
                ours.append(self.time_phase('queue', project=name))
        return [Row(f'tree: {number} files of 1 kB', 's', ours, peer, 'git add -A, write-tree')]

    def figure_task(self):
        """No peer: a whole task, and what of it is not Belljar's: the model's turns (a replay), the commands and the check's runs in
        guests, of which fresh and baseline go on at the same time."""
        self.release()
        whole, part, verify, own = [], [], [], []
        for _ in range(self.choose(8, 1)):
            name, _took = self.import_folder(os.path.join(PROJECTS, 'fix-bug'))
            begun = time.monotonic()
            code, report = self.daemon.cli_json('task', 'Fix the word count', '--project', name, '--check', CHECK,
                                                '--network', 'none')
            whole.append(time.monotonic() - begun)
            if (code, report['check']['verdict']) != (0, 'proved'):
                raise AssertionError(f'the task ended with {code}: {report}')
            model = sum(record['data']['duration_s'] for record in self.seen(report['session'], 'model'))
            part.append(sum(command['duration_s'] for command in report['commands']) + model)
            verify.append(report['timing']['verify'])
            runs = {run['where']: run['duration_s'] for run in report['check']['runs']}
            checks = max(runs.pop('fresh'), runs.pop('baseline')) + sum(runs.values())
            own.append(report['duration_s'] - part[-1] - checks)
        return [Row('task: fix-bug, until proved', 's', whole), Row('task: its commands and model', 's', part),
                Row('task: its verification', 's', verify), Row('task: Belljar\'s own part', 's', own, at_most=6)]
