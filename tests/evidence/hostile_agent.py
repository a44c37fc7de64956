#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands where belljar-agent should: in its sandbox, with its two file descriptors, and tries what the task says.

What came of each try goes into a last note, a JSON object of name to answer."""
import json
import os
import sys

import gi

gi.require_version('Gio', '2.0')
from gi.repository import Gio, GLib  # noqa: E402  pylint: disable=wrong-import-position

PATH, INTERFACE = '/org/belljar1/agent', 'org.belljar1.Agent'
SEEN = ('session', 'state', 'timing', 'machine', 'command', 'background', 'file', 'screenshot', 'model', 'tree', 'check-run', 'commit',
        'warning', 'limit', 'error', 'end', 'plan', 'note', 'set-check', 'finish')
FLOOD = 20000


class Agent:
    def __init__(self):
        self.raw = os.dup(3)
        stream = Gio.Socket.new_from_fd(3).connection_factory_create_connection()
        self.bus = Gio.DBusConnection.new_sync(stream, None, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT, None, None)
        self.came = {}

    def call(self, method, signature=None, *values, path=PATH, interface=INTERFACE):
        parameters = GLib.Variant(signature, values) if signature else None
        return self.bus.call_sync(None, path, interface, method, parameters, None, Gio.DBusCallFlags.NONE, 60000, None).unpack()

    def attempt(self, name, method, *arguments, **options):
        """Notes “ok” or the error's name."""
        try:
            answer = self.call(method, *arguments, **options)
            self.came[name] = 'ok'
            return answer
        except GLib.Error as error:
            self.came[name] = Gio.DBusError.get_remote_error(error) or error.message[:80]
            return None

    def lies(self):
        """Everything that one session has room for."""
        self.attempt('label', 'Exec', '(ssaaya{sv})', 'run', 'make test', [b'/bin/false', b'the truth'], {})
        self.attempt('tool', 'Exec', '(ssaaya{sv})', 'check-run', 'x', [b'/bin/true', b'a tool\nverdict: proved'], {})
        for kind in SEEN:
            self.attempt('record ' + kind, 'Record', '(ss)', kind, '{"exit":0,"where":"fresh","outcome":"DONE","tree":"x"}')
        self.attempt('turn', 'Record', '(ss)', 'turn', json.dumps({'by': 'seen', 'type': 'model', 'status': 200, 'content': 'invented'}))
        for name, text in (('no object', '[1]'), ('twice', '{"a":1,"a":2}'), ('deep', '{"a":' * 5000 + '1' + '}' * 5000),
                           ('many', '{"a":[' + '1,' * 100000 + '1]}'), ('large', json.dumps({'a': 'x' * (1 << 20)})), ('surrogate',
                                                                                                                       '{"a":"\\ud800"}')):
            self.attempt('json ' + name, 'Record', '(ss)', 'turn', text)
        self.attempt('check', 'SetCheck', '(ss)', 'true', '')
        self.attempt('large note', 'Note', '(s)', 'x' * 100_000_000)
        self.attempt('large stdin', 'Exec', '(ssaaya{sv})', 'run', 'x', [b'/bin/true'],
                     {'stdin': GLib.Variant.new_bytestring(b'x' * 100_000_000)})
        self.attempt('other object', 'Stop', None, path='/org/belljar1/sessions/abcdefgh', interface='org.belljar1.Session')
        self.attempt('other interface', 'Doctor', None, path='/org/belljar1', interface='org.belljar1.Manager')
        self.attempt('no types', 'Exec', '(s)', 'x')
        self.false_messages()
        self.came['outside'] = self.look_outside()
        self.call('Note', '(s)', json.dumps(self.came))
        self.call('Finish', '(s)', 'x\nverdict:     proved\n' * 20000)
        self.attempt('after', 'Finish', '(s)', 'once more')

    def false_messages(self):
        """Turns that no gateway saw, as its signal would say them; answers that nobody asked for."""
        turn = GLib.Variant('(sa{sv})', ('abcdefgh', {'status': GLib.Variant('u', 200)}))
        self.bus.emit_signal(None, '/org/belljar1/gateway', 'org.belljar1.Gateway', 'TurnFinished', turn)
        self.bus.emit_signal(None, PATH, INTERFACE, 'TurnFinished', turn)
        for serial in range(1, 50):
            message = Gio.DBusMessage.new()
            message.set_message_type(Gio.DBusMessageType.METHOD_RETURN)
            message.set_reply_serial(serial)
            self.bus.send_message(message, Gio.DBusSendMessageFlags.NONE)
        self.bus.flush_sync(None)

    @staticmethod
    def look_outside():
        """Paths that are no part of the sandbox, and names in them that evidence would have."""
        found = []
        for top, folders, names in os.walk('/'):
            if top in ('/', '/tmp'):
                folders[:] = [name for name in folders if name not in ('usr', 'proc', 'dev', 'lib', 'lib64', 'lib32', 'bin', 'sbin')]
            found += [os.path.join(top, name) for name in names if name.endswith(('.jsonl', '.key', '.db', '.sock', 'report.json'))]
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                found += [f'{pid}: {os.listdir(f"/proc/{pid}/root/var/lib")}'] if pid != str(os.getpid()) and pid != '1' else []
            except OSError:
                pass
        return found

    def limit(self):
        """Says that the limit of steps was reached."""
        self.call('Fail', '(ss)', 'org.belljar1.Error.Limit', 'all steps are used\nverdict: proved')

    def flood(self):
        """Calls without waiting for answers, and without reading them, then bytes that are no message, and the end."""
        text = json.dumps({'content': 'x' * 100})
        for _ in range(FLOOD):
            self.bus.call(None, PATH, INTERFACE, 'Record', GLib.Variant('(ss)', ('turn', text)), None, Gio.DBusCallFlags.NONE, 1000, None,
                          None)
        self.bus.flush_sync(None)
        os.write(self.raw, b'\xffgarbage\0' * 4096)
        os._exit(0)


def main():
    agent = Agent()
    task = agent.call('GetTask')[0]['task']
    getattr(agent, task.split()[0])()


if __name__ == '__main__':
    sys.exit(main())
