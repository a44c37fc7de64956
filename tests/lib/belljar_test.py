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


def _same_device(first, second):
    return os.stat(first).st_dev == os.stat(second).st_dev


def places():
    """Where state folders are made, and where the shared image is: on one file system, so that files can be linked. A copy would
    be refused, and rightly: inode and time are part of an image's seal."""
    for base in ('/tmp', '/var/tmp'):
        if _same_device(base, ROOT):
            return base, os.path.join(ROOT, '.local', 'test-image')
    return '/var/tmp', f'/var/tmp/belljar-test-image-{os.getuid()}'


# What libvirt found out about QEMU, in four seconds that each new state folder would cost. It checks whether it still holds.
CAPABILITIES = 'engine/cache/qemu/capabilities'
SHARED = ('images', 'templates', CAPABILITIES)


def link_shared(source, target):
    """Hard links: a template may not be written to, nor an image."""
    for name in SHARED:
        if os.path.exists(os.path.join(source, name)):
            os.makedirs(os.path.dirname(os.path.join(target, name)), 0o711, exist_ok=True)
            subprocess.run(['cp', '-al', os.path.join(source, name), os.path.join(target, name)], check=True)


def build_image(ready):
    with Daemon(image=None) as daemon:
        ran = daemon.cli('image', 'build', 'debian', timeout=BUILD_IMAGE_S)
        if ran.returncode != 0:
            raise AssertionError(f'the image could not be built: {ran.stderr}\n{daemon.log()}')
        daemon.end()
        os.makedirs(ready + '.new')
        shutil.copy2(os.path.join(daemon.state_dir, 'belljar.db'), ready + '.new')
        shutil.move(os.path.join(daemon.state_dir, 'images'), os.path.join(ready + '.new', 'images'))
        os.rename(ready + '.new', ready)


def make_template(ready):
    """Lets a session make the image's template, so that no test waits for it: templates are keyed by content, not by place."""
    with Daemon(image=ready) as daemon:
        path = daemon.manager().OpenSession('(a{sv})', {'network': GLib.Variant('s', 'none')})
        session = path.rsplit('/', 1)[1]
        wait_until(lambda: daemon.cli_json('show', session)[1]['state'] != 'starting', 'the first session to start', START_S * 10)
        report = daemon.cli_json('report', session)[1]
        daemon.cli('stop', session)
        daemon.end()
        if [machine['start'] for machine in report['machines']] != ['template']:
            raise AssertionError(f'no template was made: {report["warnings"]}\n{daemon.log()}')
        for name in SHARED[1:]:
            shutil.rmtree(os.path.join(ready, name), ignore_errors=True)
            os.makedirs(os.path.dirname(os.path.join(ready, name)), exist_ok=True)
            shutil.move(os.path.join(daemon.state_dir, name), os.path.join(ready, name))


def read_text(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def shared_image():
    """Builds the Debian image once a checkout, and its template. Returns the state folder that holds them."""
    _base, folder = places()
    os.makedirs(folder, exist_ok=True)
    ready = os.path.join(folder, content_key('images', 'guest', 'daemon/image'))
    made_for = os.path.join(ready, 'template-made-for')
    template_key = content_key('daemon/vm')
    with open(os.path.join(folder, 'lock'), 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(ready):
            for name in os.listdir(folder):
                if name != 'lock':
                    shutil.rmtree(os.path.join(folder, name))
            build_image(ready)
        if not os.path.exists(made_for) or read_text(made_for) != template_key:
            make_template(ready)
            with open(made_for, 'w', encoding='ascii') as out:
                out.write(template_key)
    return ready


def digest_file(path):
    with open(path, 'rb') as file:
        return hashlib.file_digest(file, 'sha256').hexdigest()


def machines_of(state_dir):
    """Pids of the QEMUs whose files are in this state folder."""
    found = []
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        with contextlib.suppress(OSError), open(path, 'rb') as file:
            words = file.read().decode(errors='replace')
            if 'qemu-system' in words.split('\0', 1)[0] and state_dir in words:
                found.append(int(path.split('/')[2]))
    return found


def vm_image_folder(target):
    """What BELLJAR_TEST_IMAGE names: disk.qcow2, vmlinuz, initrd and cmdline in one folder, @target."""
    source = os.path.join(shared_image(), 'images', 'debian', '1')
    for name in ('disk.qcow2', 'vmlinuz', 'initrd'):
        try:
            os.link(os.path.join(source, name), os.path.join(target, name))
        except OSError:  # another file system
            shutil.copyfile(os.path.join(source, name), os.path.join(target, name))
    with open(os.path.join(source, 'image.ini'), encoding='utf-8') as file:
        cmdline = re.search(r'^cmdline=(.*)$', file.read(), re.MULTILINE)
    with open(os.path.join(target, 'cmdline'), 'w', encoding='utf-8') as out:
        out.write(cmdline.group(1) + '\n')
    return target


class Daemon:
    """The real belljard. Used in a with statement; leaving it proves that nothing is left.

    image: 'link' shares the one image (do not write into it), None starts without any, else the folder that it is in
    config: more of belljar.conf; model: a Replay
    """

    def __init__(self, image='link', model=None, config='', args=()):
        reaper.start()
        self.image, self.model, self.config, self.args = image, model, config, list(args)
        self.folder = tempfile.mkdtemp(prefix='bj-', dir=places()[0])
        os.chmod(self.folder, 0o711)
        self.state_dir = os.path.join(self.folder, 's')
        self.log_path = os.path.join(self.folder, 'belljard.log')
        self.bus, self.process, self.connection = None, None, None
        self.leftovers = Leftovers(self.folder)

    def __enter__(self):
        try:
            self.bus = Bus(self.folder)
            self.leftovers.ours.add(self.bus.process.pid)
            self.write_config()
            if self.image:
                self.link_image()
            self.start()
        except BaseException:
            self.clean()
            raise
        return self

    def __exit__(self, kind, *_rest):
        try:
            self.end()
            if kind is None:
                left = self.leftovers.all()
                assert not left, f'left behind: {left}\n{self.log()}'
        finally:
            self.clean()

    def write_config(self):
        text = f'[model]\nurl={self.model.url}\nname=replay\n' if self.model else '# all defaults\n'
        with open(os.path.join(self.folder, 'belljar.conf'), 'w', encoding='utf-8') as out:
            out.write(text + self.config)

    def link_image(self):
        source = shared_image() if self.image == 'link' else self.image
        os.makedirs(self.state_dir, 0o711)
        shutil.copy2(os.path.join(source, 'belljar.db'), self.state_dir)
        link_shared(source, self.state_dir)

    def argv(self):
        return [DAEMON, f'--bus={self.bus.address}', '--auth=owner', f'--state-dir={self.state_dir}',
                f'--config={self.folder}/belljar.conf', *self.args]

    def start(self):
        """Starts it (again) and waits until it serves."""
        with open(self.log_path, 'ab') as log:
            self.process = subprocess.Popen(self.argv(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent,
                                            start_new_session=True)
        self.connection = self.connection or self.bus.connect()
        wait_until(self.is_there, 'belljard to serve', START_S)

    def is_there(self):
        if self.process.poll() is not None:
            raise AssertionError(f'belljard ended with {self.process.returncode}\n{self.log()}')
        answer = self.connection.call_sync('org.freedesktop.DBus', '/org/freedesktop/DBus', 'org.freedesktop.DBus',
                                           'NameHasOwner', GLib.Variant('(s)', ('org.belljar1',)), None,
                                           Gio.DBusCallFlags.NONE, -1, None)
        return answer.unpack()[0]

    def end(self):
        """As systemd would: SIGTERM, and it must go in time."""
        if self.process is not None and self.process.poll() is None:
            assert end_process(self.process, STOP_S), f'belljard did not end in {STOP_S} s\n{self.log()}'

    def kill(self):
        """As a crash would."""
        self.process.kill()
        self.process.wait(30)

    def clean(self):
        """Takes away whatever there is, also after a test that failed."""
        if self.process is not None:
            end_process(self.process, STOP_S)
        for pid in re.findall(r'process (\d+)', '\n'.join(self.leftovers.processes())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if self.connection is not None:
            self.connection.close_sync(None)
        if self.bus is not None:
            self.bus.close()
        for mount in self.leftovers.mounts():
            subprocess.run(['umount', '-l', mount.split(' ', 1)[1]], check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        with open(self.log_path, encoding='utf-8', errors='replace') as file:
            return file.read()[-8000:]

    def environ(self):
        return {**os.environ, 'BELLJAR_BUS': self.bus.address, 'LC_ALL': 'C.UTF-8'}

    def cli(self, *args, timeout=CLI_S, text=True, **options):
        """Runs the command. Returns its CompletedProcess."""
        return run_cli(self.bus.address, *args, timeout=timeout, text=text, **options)

    def cli_json(self, *args, timeout=CLI_S):
        """Runs the command with --json. Returns (exit code, value)."""
        ran = self.cli(*args, '--json', timeout=timeout)
        try:
            return ran.returncode, json.loads(ran.stdout)
        except ValueError as error:
            raise AssertionError(f'{args} gave no JSON, exit {ran.returncode}: {ran.stdout}{ran.stderr}') from error

    def popen_cli(self, *args, **options):
        return subprocess.Popen([CLI, *args], env=self.environ(), **options)

    def manager(self):
        return Gio.DBusProxy.new_sync(self.connection, Gio.DBusProxyFlags.NONE, None, 'org.belljar1', '/org/belljar1',
                                      'org.belljar1.Manager', None)


def run_cli(address, *args, timeout=CLI_S, text=True, **options):
    environ = {**os.environ, 'BELLJAR_BUS': address, 'LC_ALL': 'C.UTF-8'}
    return subprocess.run([CLI, *args], env=environ, capture_output=True, text=text, timeout=timeout, check=False, **options)
