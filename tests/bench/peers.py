# SPDX-License-Identifier: GPL-3.0-or-later
"""What Belljar is measured against: the same machine started by hand, its bare guest agent, and plain tools."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import belljar_test as bt
from lane import Lane

BOOT_S, ANSWER_S, COMMAND_S, TOOL_S = 300, 60, 300, 900
RESEND_S, POLL_S, SAVE_S = 2, 0.002, 300


def run_tool(argv, **options):
    """Runs a plain program to its end; its failure is an error. Returns the seconds it took."""
    begun = time.monotonic()
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=TOOL_S, check=False, **options)
    took = time.monotonic() - begun
    if ran.returncode != 0:
        raise AssertionError(f'{argv[0]} ended with {ran.returncode}: {ran.stderr[-2000:]}')
    return took


def make_overlay(base, path):
    return run_tool(['qemu-img', 'create', '-q', '-f', 'qcow2', '-F', 'qcow2', '-b', base, path])


class Agent:
    """A guest agent at the other end of a unix socket: one JSON object a line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.rest = b''
        self.id = 0

    def close(self):
        self.socket.close()

    def read(self, seconds):
        """Returns the next answer, or None when none came in time."""
        deadline = time.monotonic() + seconds
        while b'\n' not in self.rest:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(65536)
            except TimeoutError:
                return None
            if not data:
                raise AssertionError('the plain machine ended')
            self.rest += data
        line, self.rest = self.rest.split(b'\n', 1)
        return json.loads(line)

    def send(self, command, arguments):
        text = json.dumps({'execute': command, 'arguments': arguments} if arguments else {'execute': command})
        self.socket.sendall(text.encode() + b'\n')

    def ask(self, command, **arguments):
        self.send(command, arguments)
        answer = self.read(ANSWER_S)
        if answer is None or 'return' not in answer:
            raise AssertionError(f'the bare guest agent answered {command} with {answer}')
        return answer['return']

    def wait(self):
        """Until it answers. What is sent before the guest has opened its end waits in the socket."""
        deadline = time.monotonic() + BOOT_S
        while time.monotonic() < deadline:
            self.id += 1
            self.send('guest-sync', {'id': self.id})
            if self.read(RESEND_S) is not None:
                return self.flush()
        raise AssertionError(f'the plain machine\'s agent did not answer in {BOOT_S} s')

    def flush(self):
        """Reads the answers to everything that was sent more than once."""
        while self.id > 1:
            self.id -= 1
            if self.read(ANSWER_S) is None:
                raise AssertionError('the bare guest agent lost an answer')

    def execute(self, *argv):
        """What a program without Belljar would do: guest-exec, then guest-exec-status until it has ended."""
        pid = self.ask('guest-exec', path=argv[0], arg=list(argv[1:]), **{'capture-output': True})['pid']
        deadline = time.monotonic() + COMMAND_S
        while time.monotonic() < deadline:
            time.sleep(POLL_S)
            status = self.ask('guest-exec-status', pid=pid)
            if status['exited']:
                return status
        raise AssertionError(f'{argv} did not end in {COMMAND_S} s')


class Monitor(Agent):
    """QEMU's own socket: the same lines, with a greeting and events between the answers."""

    def __init__(self, path):
        super().__init__(path)
        self.ask('qmp_capabilities')

    def read(self, seconds):
        deadline = time.monotonic() + seconds
        while (answer := super().read(max(deadline - time.monotonic(), 0))) is not None:
            if 'QMP' not in answer and 'event' not in answer:
                break
        return answer


class PlainMachine:
    """QEMU by hand: the same kernel, initrd, command line, disk, memory and processors as a session's, nothing else."""

    def __init__(self, kvm, saved=None, memory_mib=1024, cpus=2):
        """saved: a SavedMachine that it shall go on from, instead of being booted"""
        self.folder = tempfile.mkdtemp(prefix='bj-plain-', dir=bt.places()[0])
        self.process, self.agent, self.boot_s, self.lanes = None, None, None, {}
        try:
            bt.vm_image_folder(self.folder)
            self.begun = time.monotonic()
            make_overlay(saved.disk if saved else os.path.realpath(self.path('disk.qcow2')), self.path('overlay.qcow2'))
            more = ['-incoming', f'exec:cat {saved.state}'] if saved else []
            self.start(self.build_argv(kvm, memory_mib, cpus) + more)
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.folder, name)

    def build_argv(self, kvm, memory_mib, cpus):
        with open(self.path('cmdline'), encoding='utf-8') as file:
            cmdline = file.read().strip()
        return ['qemu-system-x86_64', '-nodefaults', '-no-user-config', '-machine', 'q35', '-accel', 'kvm' if kvm else 'tcg',
                '-cpu', 'host' if kvm else 'max', '-m', str(memory_mib), '-smp', str(cpus), '-display', 'none', '-device', 'VGA',
                '-kernel', self.path('vmlinuz'), '-initrd', self.path('initrd'), '-append', cmdline,
                '-drive', f'file={self.path("overlay.qcow2")},format=qcow2,if=virtio,cache=unsafe,discard=unmap',
                '-device', 'virtio-serial-pci', '-chardev', f'socket,id=agent,path={self.path("agent")},server=on,wait=off',
                '-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0',
                '-chardev', f'socket,id=control,path={self.path("control")},server=on,wait=off',
                '-device', 'virtserialport,chardev=control,name=org.belljar.control.0',
                '-chardev', f'socket,id=bulk,path={self.path("bulk")},server=on,wait=off',
                '-device', 'virtserialport,chardev=bulk,name=org.belljar.bulk.0',
                '-qmp', f'unix:{self.path("monitor")},server=on,wait=off',
                '-object', 'rng-random,id=rng,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=rng']

    def start(self, argv):
        begun = time.monotonic()
        with open(self.path('log'), 'wb') as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            preexec_fn=bt.die_with_parent)
        self.agent = bt.wait_until(self.connect, 'QEMU\'s socket', bt.START_S)
        self.agent.wait()
        self.boot_s = time.monotonic() - begun

    def connect(self):
        if self.process.poll() is not None:
            with open(self.path('log'), encoding='utf-8', errors='replace') as file:
                raise AssertionError(f'QEMU ended with {self.process.returncode}: {file.read()}')
        try:
            return Agent(self.path('agent'))
        except OSError:
            return None

    def lane(self, name):
        """The raw channel: control or bulk."""
        if name not in self.lanes:
            self.lanes[name] = Lane(self.path(name)).greet(ANSWER_S)
        return self.lanes[name]

    def first_command(self):
        """The seconds from the making of its overlay to the result of a command."""
        status = self.agent.execute('/bin/true')
        if status['exitcode'] != 0:
            raise AssertionError(f'true ended with {status}')
        return time.monotonic() - self.begun

    def save(self, path):
        """Writes memory and devices into a file and ends it; the disk stays as it was at that moment."""
        with contextlib.closing(Monitor(self.path('monitor'))) as monitor:
            monitor.ask('migrate', uri=f'exec:cat > {path}')
            bt.wait_until(lambda: monitor.ask('query-migrate')['status'] == 'completed', f'{path} to be written', SAVE_S)
            monitor.ask('quit')
        self.process.wait(SAVE_S)

    @contextlib.contextmanager
    def frozen(self):
        """It takes no processor time meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def close(self):
        for end in (self.agent, *self.lanes.values()):
            if end is not None:
                end.close()
        if self.process is not None:
            bt.end_process(self.process)
        shutil.rmtree(self.folder)


class SavedMachine:
    """A plain machine that was booted, ran a command, and was saved: what libvirt's save does, with its disk as a base for others."""

    def __init__(self, kvm):
        self.machine = PlainMachine(kvm)
        self.disk, self.state = self.machine.path('overlay.qcow2'), self.machine.path('state')
        try:
            self.machine.agent.execute('/usr/bin/systemctl', 'is-system-running', '--wait')
            self.machine.first_command()
            self.machine.save(self.state)
        except BaseException:
            self.close()
            raise

    def close(self):
        self.machine.close()


def time_first_command(kvm, saved=None):
    """Starts a plain machine, or one that goes on from @saved, runs a command in it, ends it. Returns the seconds until its result."""
    with contextlib.closing(PlainMachine(kvm, saved)) as machine:
        return machine.first_command()


def copy_folder(source, target):
    return run_tool(['cp', '-a', source, target])


def time_git(folder, *calls):
    """Git's own way, as whoever has no settings. Returns the seconds of each call."""
    environ = {**os.environ, 'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_CONFIG_SYSTEM': '/dev/null'}
    return [run_tool(['git', *words], cwd=folder, env=environ) for words in calls]


def write_tree(folder):
    """From a folder to a tree. Returns the seconds it took."""
    return sum(time_git(folder, ['init', '-q'], ['add', '-A'], ['write-tree']))


def commit_tree(folder):
    """From a folder to a commit. Returns the seconds of adding (making the repository included) and of committing."""
    who = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost']
    made, added, committed = time_git(folder, ['init', '-q'], ['add', '-A'], [*who, 'commit', '-q', '-m', 'bench'])
    return made + added, committed
