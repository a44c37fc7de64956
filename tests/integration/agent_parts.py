# SPDX-License-Identifier: GPL-3.0-or-later
"""The model's side without a machine: the real gateway and the scripted model, and what tests need to talk to them."""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
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


def is_sanitized():
    """AddressSanitizer keeps freed memory for a while: sizes say nothing then."""
    with open(os.path.join(BUILD, "gateway", "belljar-gateway"), "rb") as file:
        return b"__asan_init" in file.read()


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
        if os.path.exists(self.log):
            os.unlink(self.log)
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
        try:
            self.connection.close_sync(None)
        except GLib.Error as error:
            # The agent is dead: our side may already have noticed and closed, even since a question about it.
            if not error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CLOSED):
                raise
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


AGENT_XML = os.path.join(ROOT, "dbus", "org.belljar1.Agent.xml")
PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000"
                    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082")


class VerbError(Exception):
    """What a verb of the fake daemon fails with: name under org.belljar1.Error, and text."""


def as_bytes(value):
    return bytes(value).rstrip(b"\0")


class Daemon:
    """Plays the daemon for one belljar-agent: the Agent interface over a socket pair, commands run in a folder here."""

    def __init__(self, gateway_socket, folder, task, data=None, argv_prefix=(), **facts):
        MainLoop.ensure()
        self.folder = folder
        self.facts = {"task": GLib.Variant("s", task), "project": GLib.Variant("s", "demo"),
                      "folder": GLib.Variant.new_bytestring(folder.encode()), "os": GLib.Variant("s", "Debian 12"),
                      "model": GLib.Variant("s", "replay"), "check": GLib.Variant("s", ""),
                      "steps": GLib.Variant("u", 200), "seconds": GLib.Variant("u", 600),
                      "output-bytes": GLib.Variant("u", 65536), "context": GLib.Variant("u", 32768),
                      "vision": GLib.Variant("b", False), "think": GLib.Variant("b", False),
                      "textual-tools": GLib.Variant("b", False), "network": GLib.Variant("s", "none")}
        self.facts.update(facts)
        self.calls, self.records, self.plan, self.notes, self.background = [], [], [], [], {}
        self.finished = self.failed = self.check = None
        self.fail_with = {}
        ours, theirs = socket.socketpair()
        handle = os.open(gateway_socket, os.O_PATH)
        argv = [*argv_prefix, os.path.join(BUILD, "agent", "belljar-agent"),
                "--data=" + (data or os.path.join(ROOT, "data", "agent"))]
        self.running = []
        self.process = spawn_with_fds(argv, [theirs.fileno(), handle], stderr=subprocess.PIPE)
        theirs.close()
        os.close(handle)
        self.connection = peer_connection(ours)
        with open(AGENT_XML, encoding="utf-8") as file:
            interface = Gio.DBusNodeInfo.new_for_xml(file.read()).lookup_interface("org.belljar1.Agent")
        self.connection.register_object("/org/belljar1/agent", interface, self._on_call, None, None)
        self.connection.start_message_processing()

    def _on_call(self, _connection, _sender, _path, _interface, method, parameters, invocation):
        threading.Thread(target=self._answer, args=(method, parameters, invocation), daemon=True).start()

    def _answer(self, method, parameters, invocation):
        arguments = parameters.unpack()
        self.calls.append((method, arguments))
        try:
            if self.fail_with.get(method):
                raise self.fail_with[method].pop(0)
            invocation.return_value(getattr(self, "verb_" + method)(*arguments))
        except VerbError as error:
            invocation.return_dbus_error("org.belljar1.Error." + error.args[0], error.args[1])
        except Exception as error:  # a mistake of this test, seen in the agent's error
            invocation.return_dbus_error("org.belljar1.Error.Failed", repr(error))

    def verb_GetTask(self):
        return GLib.Variant("(a{sv})", (self.facts,))

    def verb_Exec(self, _tool, _label, argv, options):
        started = time.monotonic()
        timed_out = False
        process = subprocess.Popen([as_bytes(a) for a in argv], cwd=as_bytes(options["cwd"]), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.running.append(process)
        try:
            out, err = process.communicate(bytes(options.get("stdin", b"")), options.get("timeout", 60))
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, 9)
            out, err = process.communicate()
        cap = 65536
        return GLib.Variant("(a{sv})", ({
            "exit": GLib.Variant("i", max(process.returncode, -1)),
            "signal": GLib.Variant("u", max(-process.returncode, 0)), "timed-out": GLib.Variant("b", timed_out),
            "stdout": GLib.Variant("ay", out[:cap]), "stderr": GLib.Variant("ay", err[:cap]),
            "truncated": GLib.Variant("b", len(out) > cap), "duration": GLib.Variant("d", time.monotonic() - started)},))

    def verb_Start(self, label, _argv, _options):
        self.background[len(self.background) + 1] = label
        return GLib.Variant("(u)", (len(self.background),))

    def verb_Poll(self, number, _wait):
        if number not in self.background:
            raise VerbError("NotFound", f"there is no background command {number}")
        return GLib.Variant("(a{sv})", ({"running": GLib.Variant("b", True), "output": GLib.Variant("ay", b"tick\n")},))

    def verb_Send(self, _number, _data):
        return None

    def verb_Kill(self, _number):
        return None

    def verb_ListBackground(self):
        return GLib.Variant("(aa{sv})", ([{"id": GLib.Variant("u", i), "label": GLib.Variant("s", label),
                                           "running": GLib.Variant("b", True)}
                                          for i, label in self.background.items()],))

    def verb_ReadFile(self, path, offset, limit):
        try:
            with open(as_bytes(path), "rb") as file:
                data = file.read()
        except FileNotFoundError as error:
            raise VerbError("NotFound", str(error)) from error
        return GLib.Variant("(ayt)", (data[offset:offset + limit], len(data)))

    def verb_WriteFile(self, path, data, options):
        try:
            with open(as_bytes(path), "ab" if options.get("append") else "wb") as file:
                file.write(bytes(data))
        except FileNotFoundError as error:
            raise VerbError("NotFound", str(error)) from error
        if "mode" in options:
            os.chmod(as_bytes(path), options["mode"])

    def verb_Screenshot(self):
        return GLib.Variant("(ay)", (PNG,))

    def verb_TypeText(self, _text):
        return None

    verb_PressKeys = verb_TypeText

    def verb_MouseMove(self, *_where):
        raise VerbError("Invalid", "This image has no desktop")

    verb_MouseClick = verb_MouseDrag = verb_Scroll = verb_MouseMove

    def verb_Wait(self, seconds):
        time.sleep(seconds)

    def verb_GitStatus(self):
        return GLib.Variant("(aa{sv}tas)", (
            [{"path": GLib.Variant("s", "a"), "encoded": GLib.Variant("b", False), "status": GLib.Variant("s", "modified"),
              "added": GLib.Variant("i", 2), "removed": GLib.Variant("i", -1)}], 7, ["\"pipe\" was left out"]))

    def verb_GitDiff(self, path):
        return GLib.Variant("(ayb)", (b"+\xff " + as_bytes(path), True))

    def verb_GitLog(self, count):
        commit = {"commit": GLib.Variant("s", "ab"), "time": GLib.Variant("t", 0), "subject": GLib.Variant("s", "first"),
                  "verdict": GLib.Variant("s", ""), "session": GLib.Variant("s", "")}
        return GLib.Variant("(aa{sv})", ([commit] * count,))

    def verb_PlanAdd(self, text):
        self.plan.append([text, "todo"])
        return GLib.Variant("(u)", (len(self.plan),))

    def verb_PlanUpdate(self, number, status):
        self.plan[number - 1][1] = status

    def verb_PlanList(self):
        return GLib.Variant("(aa{sv})", ([{"id": GLib.Variant("u", i + 1), "text": GLib.Variant("s", text),
                                           "status": GLib.Variant("s", status)}
                                          for i, (text, status) in enumerate(self.plan)],))

    def verb_Note(self, text):
        self.notes.append(text)

    def verb_SetCheck(self, command, setup):
        self.check = (command, setup)

    def verb_Record(self, kind, text):
        assert len(text) <= 1024 * 1024
        self.records.append((kind, json.loads(text)))

    def verb_Finish(self, summary):
        self.finished = summary

    def verb_Fail(self, error, message):
        self.failed = (error, message)

    def records_of(self, kind):
        return [value for name, value in self.records if name == kind]

    def wait(self, seconds=DEADLINE):
        """Waits for the agent's end; returns its exit code."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the agent did not end; calls: {self.calls[-5:]}") from None
        self.errors = self.process.stderr.read().decode()
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        for process in self.running:  # whoever called for it may have gone before it ended
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        try:
            self.connection.close_sync(None)
        except GLib.Error as error:
            # The agent is dead: our side may already have noticed and closed, even since a question about it.
            if not error.matches(Gio.io_error_quark(), Gio.IOErrorEnum.CLOSED):
                raise
