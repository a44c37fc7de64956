# SPDX-License-Identifier: GPL-3.0-or-later
"""The model's side without a machine: the real gateway and the scripted model, and what tests need to talk to them."""

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BELLJAR_BUILD", os.path.join(ROOT, "build"))
REPLAY = os.path.join(ROOT, "tests", "replay", "belljar-replay")
DEADLINE = 60


def wait_until(condition, what, seconds=DEADLINE):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.02)


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:"))


class MainLoop:
    """The default main context, on a thread of its own, for the whole test run."""

    _running = None

    @classmethod
    def ensure(cls):
        if cls._running is None:
            cls._running = threading.Thread(target=GLib.MainLoop().run, daemon=True)
            cls._running.start()


def spawn_with_fds(argv, fds, **more):
    """Starts a program whose file descriptors 3, 4, … are @fds."""
    high = [os.dup(fd) for fd in fds]

    def place():
        kept = [os.dup2(fd, 100 + i) for i, fd in enumerate(high)]
        for i, fd in enumerate(kept):
            os.dup2(fd, 3 + i)
        os.closerange(3 + len(kept), 1024)

    try:
        return subprocess.Popen(argv, preexec_fn=place, close_fds=False, **more)
    finally:
        for fd in high:
            os.close(fd)


def peer_connection(sock):
    """The serving end of a peer-to-peer D-Bus connection; message processing starts later."""
    stream = Gio.Socket.new_from_fd(sock.detach()).connection_factory_create_connection()
    flags = (Gio.DBusConnectionFlags.AUTHENTICATION_SERVER | Gio.DBusConnectionFlags.AUTHENTICATION_ALLOW_ANONYMOUS
             | Gio.DBusConnectionFlags.DELAY_MESSAGE_PROCESSING)
    return Gio.DBusConnection.new_sync(stream, Gio.dbus_generate_guid(), flags, None, None)


class Work:
    """A folder with a short path that goes away."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="model-", dir="/tmp")

    def file(self, name, value):
        path = os.path.join(self.path, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(value if isinstance(value, str) else json.dumps(value))
        return path

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)


class Replay:
    """The scripted model; @scenario is a list of turns, a whole scenario, or a path."""

    def __init__(self, work, scenario, *options):
        if isinstance(scenario, list):
            scenario = {"turns": scenario}
        path = scenario if isinstance(scenario, str) else work.file("default.json", scenario)
        self.log = os.path.join(work.path, "replay.log")
        self.process = subprocess.Popen([REPLAY, "--scenario", path, "--log", self.log, *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.url = self.process.stdout.readline().decode().strip()

    def entries(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file.read().split("\n")[:-1]]

    def chats(self):
        return [entry for entry in self.entries() if entry.get("path") == "/api/chat" and "n" in entry]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Gateway:
    """The real belljar-gateway with this test as its daemon."""

    def __init__(self, work, url, allow=("replay",), **options):
        MainLoop.ensure()
        self.work = work
        self.turns = []
        ours, theirs = socket.socketpair()
        self.process = spawn_with_fds([os.path.join(BUILD, "gateway", "belljar-gateway")], [theirs.fileno()])
        theirs.close()
        self.connection = peer_connection(ours)
        self.connection.signal_subscribe(None, "org.belljar1.Gateway", "TurnFinished", "/org/belljar1/gateway", None,
                                         Gio.DBusSignalFlags.NONE, self._on_turn)
        self.connection.start_message_processing()
        if url is not None:
            self.configure(url=GLib.Variant("s", url), allow=GLib.Variant("as", list(allow)), **options)

    def _on_turn(self, _connection, _sender, _path, _interface, _signal, parameters):
        session, info = parameters.unpack()
        self.turns.append((session, info))

    def call(self, method, parameters, fds=None, reply=None):
        return self.connection.call_with_unix_fd_list_sync(None, "/org/belljar1/gateway", "org.belljar1.Gateway", method,
                                                           parameters, reply, Gio.DBusCallFlags.NONE, DEADLINE * 1000,
                                                           fds, None)[0]

    def configure(self, **options):
        self.call("Configure", GLib.Variant("(a{sv})", ({k.replace("_", "-"): v for k, v in options.items()},)))

    def probe(self, model):
        return self.call("Probe", GLib.Variant("(s)", (model,))).unpack()[0]

    def open_session(self, model="replay", name=None):
        """Returns the path of the session's socket."""
        name = name or "".join(random.choice("abcdefghijklmnopqrstuvwxyz234567") for _ in range(8))
        path = os.path.join(self.work.path, os.path.basename(name) + ".sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)
        fds = Gio.UnixFDList()
        index = fds.append(listener.fileno())
        try:
            self.call("OpenSession", GLib.Variant("(shs)", (name, index, model)), fds)
        finally:
            listener.close()
        return path

    def close_session(self, name):
        self.call("CloseSession", GLib.Variant("(s)", (name,)))

    def close(self):
        if not self.connection.is_closed():
            self.connection.close_sync(None)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the gateway outlived its daemon") from None


class UnixHttp(http.client.HTTPConnection):
    """HTTP to a session's socket."""

    def __init__(self, path, timeout=DEADLINE):
        super().__init__("gateway", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def ask(self, method, path, body=None, headers=None):
        """Returns status and body."""
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        self.request(method, path, data, headers or {})
        answer = self.getresponse()
        return answer.status, answer.read()


def ask(path, method, url, body=None, headers=None):
    connection = UnixHttp(path)
    try:
        return connection.ask(method, url, body, headers)
    finally:
        connection.close()


def chat_body(text="hello", **more):
    return {"model": "replay", "messages": [{"role": "user", "content": text}], **more}
