# SPDX-License-Identifier: GPL-3.0-or-later
"""What the figures share: the daemon, an open session, the plain machine, and how times and memory are read."""
import contextlib
import functools
import json
import os
import random
import shutil
import tempfile
import time

from gi.repository import Gio, GLib

import belljar_test as bt
import peers
from sessions import SessionCase

CALL_MS, EXEC_S = 2000000, 1800
OVER = ('finished', 'failed', 'cancelled')


class Person(SessionCase):
    """The sessions' helpers, for a daemon that is there already."""

    def __init__(self, daemon):
        super().__init__()
        self.daemon = daemon


def read_rss_mib(pid, field='VmRSS'):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ':')) / 1024


def execute_in(connection, session, *argv):
    """Session.Exec. Returns the exit code, both outputs and the facts."""
    arguments = GLib.Variant('(aaya{sv})', ([word.encode() for word in argv], {'timeout': GLib.Variant('u', EXEC_S)}))
    answer = connection.call_sync('org.belljar1', f'/org/belljar1/sessions/{session}', 'org.belljar1.Session', 'Exec',
                                  arguments, None, Gio.DBusCallFlags.NONE, CALL_MS, None)
    return answer.unpack()


def measure(function, *args):
    begun = time.monotonic()
    function(*args)
    return time.monotonic() - begun


class Basis:
    """short: few runs and small amounts, to see that everything works"""

    def __init__(self, short):
        self.short, self.project = short, 0
        self.stack, self.machines = contextlib.ExitStack(), contextlib.ExitStack()

    def choose(self, whole, short):
        return short if self.short else whole

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
        """In the session that stays open."""
        return execute_in(connection, self.session, *argv)

    def settle(self):
        """Ready is early in a guest's start: waits until both guests are done with it."""
        wait = ('/usr/bin/systemctl', 'is-system-running', '--wait')
        self.execute(self.daemon.connection, *wait)
        self.plain.agent.execute(*wait)

    def make_folder(self, stack, number):
        """@number files of 1 kB, a hundred a folder. Returns the folder that has them in "files"."""
        folder = tempfile.mkdtemp(prefix='bj-files-', dir=bt.places()[0])
        stack.callback(shutil.rmtree, folder)
        content = random.Random(1)
        for i in range(number):
            path = os.path.join(folder, 'files', f'{i // 100:03}')
            os.makedirs(path, exist_ok=True)
            with open(os.path.join(path, f'{i:05}.txt'), 'w', encoding='ascii') as out:
                out.write(content.randbytes(512).hex())
        return folder

    def import_folder(self, folder):
        """Returns the new project's name and the seconds it took."""
        self.project += 1
        name = f'bench-{self.project}'
        return name, measure(self.person.import_folder, name, folder)

    def grow(self, function, *args):
        """By how much the daemon's memory grew at the highest, in MiB."""
        pid = self.daemon.process.pid
        before = read_rss_mib(pid)
        with open(f'/proc/{pid}/clear_refs', 'w', encoding='ascii') as out:
            out.write('5')  # its highest so far counts from now on
        function(*args)
        return max(read_rss_mib(pid, 'VmHWM') - before, 0)

    def transcript(self, session):
        """Its records."""
        path = os.path.join(self.daemon.state_dir, 'sessions', session, 'evidence', 'transcript.jsonl')
        with open(path, encoding='utf-8') as file:
            return [json.loads(line) for line in file]

    def seen(self, session, kind):
        """The transcript's records of what the daemon saw itself, of one type."""
        return [record for record in self.transcript(session) if (record['by'], record['type']) == ('seen', kind)]
