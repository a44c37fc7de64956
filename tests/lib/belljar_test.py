# SPDX-License-Identifier: GPL-3.0-or-later
"""What integration tests share: the real daemon on a private bus, the scripted model, one image for all, and the proof that
nothing is left behind."""
import contextlib
import ctypes
import fcntl
import glob
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402  pylint: disable=wrong-import-position

import reaper  # noqa: E402  pylint: disable=wrong-import-position

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get('BELLJAR_BUILD', os.path.join(ROOT, 'build'))
CLI = os.path.join(BUILD, 'cli', 'belljar')
DAEMON = os.path.join(BUILD, 'daemon', 'belljard')
REPLAY = os.path.join(ROOT, 'tests', 'replay', 'belljar-replay')
START_S, STOP_S, BUILD_IMAGE_S, CLI_S = 120, 200, 1800, 900

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def wait_until(condition, what, seconds):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f'waited {seconds} s for {what}')
        time.sleep(0.05)


def read_line(pipe, what, seconds=START_S):
    if not select.select([pipe], [], [], seconds)[0]:
        raise AssertionError(f'waited {seconds} s for {what}')
    return pipe.readline().strip()


def end_process(process, seconds=30, number=signal.SIGTERM):
    """Ends it, hard when it does not listen. Returns whether it went by itself."""
    if process.poll() is None:
        process.send_signal(number)
    try:
        process.wait(seconds)
        return True
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)
        return False


class Bus:
    """A bus of its own in @folder."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            ['dbus-daemon', '--session', '--nofork', '--print-address', f'--address=unix:path={folder}/bus'],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=die_with_parent)
        self.address = read_line(self.process.stdout, 'the bus')

    def connect(self):
        flags = Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION
        return Gio.DBusConnection.new_for_address_sync(self.address, flags, None, None)

    def close(self):
        end_process(self.process)
        self.process.stdout.close()


class Replay:
    """The scripted model. @scenario: a name under tests/replay/scenarios, a path, or an object."""

    def __init__(self, scenario='fix-bug', *args):
        self.folder = tempfile.mkdtemp(prefix='bj-replay-')
        path = scenario
        if isinstance(scenario, dict):
            path = os.path.join(self.folder, 'scenario.json')
            with open(path, 'w', encoding='utf-8') as out:
                json.dump(scenario, out)
        elif '/' not in scenario:
            path = os.path.join(ROOT, 'tests', 'replay', 'scenarios', scenario + '.json')
        self.log = os.path.join(self.folder, 'log.jsonl')
        self.process = subprocess.Popen([REPLAY, '--scenario', path, '--log', self.log, *args], stdout=subprocess.PIPE,
                                        text=True, preexec_fn=die_with_parent)
        self.url = read_line(self.process.stdout, 'the scripted model')
        if not self.url.startswith('http'):
            raise AssertionError(f'the scripted model said “{self.url}”')

    def requests(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding='utf-8') as file:
            return [json.loads(line) for line in file]

    def close(self):
        end_process(self.process)
        self.process.stdout.close()
        shutil.rmtree(self.folder)


class Leftovers:
    """What a state folder's daemon has in the world right now."""

    def __init__(self, state_dir):
        self.state_dir = state_dir
        self.ours = {os.getpid()}  # processes that may name the folder

    @staticmethod
    def read(path):
        try:
            with open(path, 'rb') as file:
                return file.read().decode('utf-8', 'replace')
        except OSError:
            return ''

    def processes(self):
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            line = self.read(f'/proc/{pid}/cmdline').replace('\0', ' ').strip()
            if self.state_dir in line and int(pid) not in self.ours:
                found.append(f'process {pid}: {line[:200]}')
        return found

    def mounts(self):
        return [f'mount {line.split()[4]}' for line in self.read('/proc/self/mountinfo').splitlines()
                if self.state_dir in line]

    def loops(self):
        found = []
        for name in os.listdir('/sys/block'):
            backing = self.read(f'/sys/block/{name}/loop/backing_file').strip()
            if self.state_dir in backing:
                found.append(f'/dev/{name}: {backing}')
        return found

    def files(self):
        """Files of machines: what a session must not leave when it is over."""
        found = []
        for folder, _folders, names in os.walk(os.path.join(self.state_dir, 'sessions')):
            if os.path.basename(folder) in ('run', 'agent'):
                found += [f'file {os.path.join(folder, name)}' for name in names]
        return found

    def all(self):
        return self.processes() + self.mounts() + self.loops() + self.files()


def content_key(*tops):
    """Changes when a file in these folders does."""
    digest = hashlib.sha256()
    for top in tops:
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                digest.update(os.path.relpath(path, ROOT).encode() + b'\0')
                with open(path, 'rb') as file:
                    digest.update(file.read())
    return digest.hexdigest()[:16]


