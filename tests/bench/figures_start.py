# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of starting: from OpenSession to the first command's result, one, four at once, and what an idle machine's memory is."""
import concurrent.futures
import contextlib
import os
import time

from gi.repository import Gio, GLib

import belljar_test as bt
import peers
from basis import CALL_MS, Basis, Person, execute_in
from sessions import PROJECTS
from table import Row

STOCK_S, SETTLE_S, IDLE_S = 240, 2, 5
FOUR = 4
SESSION = 'org.belljar1.Session'


class Caller:
    """A program that opens a session and runs a command in it, with a connection and a main context of its own."""

    def __init__(self, daemon):
        self.connection, self.path, self.state = daemon.bus.connect(), None, None

    def close(self):
        self.connection.close_sync(None)

    def on_changed(self, _connection, _sender, path, _interface, _signal, parameters):
        changed = parameters.unpack()[1]
        if path == self.path and 'State' in changed:
            self.state = changed['State']

    def call(self, path, interface, method, arguments):
        return self.connection.call_sync('org.belljar1', path, interface, method, arguments, None, Gio.DBusCallFlags.NONE, CALL_MS,
                                         None).unpack()[0]

    def wait_running(self, context):
        timeout = GLib.timeout_source_new_seconds(bt.START_S)
        timeout.set_callback(lambda *_: True)  # wakes up the loop below
        timeout.attach(context)
        deadline = time.monotonic() + bt.START_S
        while self.state == 'starting' and time.monotonic() < deadline:
            context.iteration(True)
        timeout.destroy()
        if self.state != 'running':
            raise AssertionError(f'{self.path} is {self.state} after {bt.START_S} s at most')

    def start(self, **options):
        """Returns the seconds until `true` has run, and the session, which stays open."""
        typed = {key: GLib.Variant('s', value) for key, value in {'network': 'none', **options}.items()}
        context = GLib.MainContext()
        context.push_thread_default()
        self.path, self.state = None, None
        watch = self.connection.signal_subscribe('org.belljar1', 'org.freedesktop.DBus.Properties', 'PropertiesChanged', None,
                                                 SESSION, Gio.DBusSignalFlags.NONE, self.on_changed)
        try:
            begun = time.monotonic()
            self.path = self.call('/org/belljar1', 'org.belljar1.Manager', 'OpenSession', GLib.Variant('(a{sv})', (typed,)))
            self.state = self.call(self.path, 'org.freedesktop.DBus.Properties', 'Get', GLib.Variant('(ss)', (SESSION, 'State')))
            self.wait_running(context)
            session = self.path.rsplit('/', 1)[1]
            code = execute_in(self.connection, session, '/bin/true')[0]
            took = time.monotonic() - begun
        finally:
            self.connection.signal_unsubscribe(watch)
            context.pop_thread_default()
        if code != 0:
            raise AssertionError(f'true in {session} ended with {code}')
        return took, session


class Way:
    """A way to start, with the daemon that has it. @stock: machines in its pool before each start"""

    def __init__(self, name, daemon, stock=0):
        self.name, self.daemon, self.stock = name, daemon, stock
        self.person = Person(daemon)

    def in_stock(self):
        pool = os.path.join(self.daemon.state_dir, 'pool')
        made = [name for name in os.listdir(pool) if os.path.exists(os.path.join(pool, name, 'overlay.qcow2'))]
        return len(made) == self.stock and len(bt.machines_of(self.daemon.state_dir)) == self.stock

    def get_ready(self):
        """What came before is gone, and what shall be in stock is there and paused."""
        bt.wait_until(self.in_stock, f'{self.stock} machines and no more ({self.name})', STOCK_S)
        if self.stock > 0:
            time.sleep(SETTLE_S)

    def end(self, session):
        self.person.stop(session)
        return self.daemon.cli_json('report', session)[1]['machines'][0]['start']

    def time_start(self, **options):
        """One session, opened and ended. It must have come this way."""
        self.get_ready()
        with contextlib.closing(Caller(self.daemon)) as caller:
            took, session = caller.start(**options)
        start = self.end(session)
        if start != self.name:
            raise AssertionError(f'{session} came from {start}, not from {self.name}\n{self.daemon.log()}')
        return took

    def time_together(self, number):
        """The seconds until the last of @number sessions that were opened at once has its result."""
        self.get_ready()
        with contextlib.ExitStack() as stack:
            callers = [stack.enter_context(contextlib.closing(Caller(self.daemon))) for _ in range(number)]
            pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(number))
            begun = time.monotonic()
            started = [future.result() for future in [pool.submit(caller.start) for caller in callers]]
            took = time.monotonic() - begun
        ways = [self.end(session) for _took, session in started]
        if ways != [self.name] * number:
            raise AssertionError(f'they came from {ways}, not from {self.name}\n{self.daemon.log()}')
        return took


def read_pss_mib(pid):
    with open(f'/proc/{pid}/smaps_rollup', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('Pss:')) / 1024


class StartFigures(Basis):
    def figure_start(self):
        """Each way in turns with a plain machine, booted and restored."""
        self.release()
        took = {name: [] for name in ('template', 'pool', 'cold', 'boot', 'restore')}
        with contextlib.ExitStack() as stack:
            ways = [Way('template', self.daemon),
                    Way('pool', stack.enter_context(bt.Daemon(config='[pool]\nsize=1\n')), stock=1),
                    Way('cold', stack.enter_context(bt.Daemon(config='[pool]\ntemplates=false\n')))]
            kvm = self.accelerator() == 'kvm'
            saved = stack.enter_context(contextlib.closing(peers.SavedMachine(kvm)))
            for way in self.choose(ways, []):
                way.time_start()  # the first session of a daemon waits for libvirt to look at QEMU, and loads the template
            for _ in range(self.choose(8, 1)):
                for way in ways:
                    took[way.name].append(way.time_start())
                took['boot'].append(peers.time_first_command(kvm))
                took['restore'].append(peers.time_first_command(kvm, saved))
        return [Row('start: from the template', 's', took['template'], took['boot'], 'overlay, stock boot', at_most=1.6),
                Row('start: from the template', 's', took['template'], took['restore'], 'QEMU save, restore'),
                Row('start: from the pool', 's', took['pool'], took['restore'], 'QEMU save, restore', at_most=0.5),
                Row('start: cold', 's', took['cold'], took['boot'], 'overlay, stock boot', at_most=6)]

    def figure_four(self):
        """Four at once from the template, until the last one's first result, against one."""
        self.release()
        way, ours, one = Way('template', self.daemon), [], []
        for _ in range(self.choose(8, 1)):
            one.append(way.time_start())
            ours.append(way.time_together(FOUR))
        return [Row('four: at once, the last result', 's', ours, one, 'one of ours', at_most_ratio=2.5)]

    def figure_memory(self):
        """Of the QEMU of a clone that does nothing, with and without a share; against the plain machine's."""
        self.release()
        project, _took = self.import_folder(os.path.join(PROJECTS, 'fix-bug'))
        found, peer, way = {'no share': [], 'with a share': []}, [], Way('template', self.daemon)
        for _ in range(self.choose(8, 1)):
            for name, options in (('no share', {}), ('with a share', {'project': project})):
                way.get_ready()
                with contextlib.closing(Caller(self.daemon)) as caller:
                    _took, session = caller.start(**options)
                    time.sleep(IDLE_S)
                    found[name] += [read_pss_mib(pid) for pid in bt.machines_of(self.daemon.state_dir)]
                    way.end(session)
            peer.append(read_pss_mib(self.plain.process.pid))
        return [Row(f'memory: PSS of a clone, {name}', 'MiB', values, peer, 'plain QEMU, booted', at_most=120)
                for name, values in found.items()]
