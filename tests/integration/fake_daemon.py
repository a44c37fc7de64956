# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for belljard on a private bus, for tests of the command alone.

What a session does is scripted by its task, a JSON object: outcome, verdict, hold (ends only when stopped),
late (milliseconds until it ends), error (a D-Bus error name that RunTask answers with).
Run as a program it prints the bus address and serves until its standard input ends.
"""
import json
import os
import subprocess
import sys

from gi.repository import Gio, GLib

ROOT = '/org/belljar1'
HERE = os.path.dirname(os.path.abspath(__file__))
DBUS = os.path.join(HERE, '..', '..', 'dbus')
OBJECT_MANAGER = '''<node><interface name="org.freedesktop.DBus.ObjectManager">
<method name="GetManagedObjects"><arg name="objects" type="a{oa{sa{sv}}}" direction="out"/></method>
<signal name="InterfacesAdded"><arg type="o"/><arg type="a{sa{sv}}"/></signal>
<signal name="InterfacesRemoved"><arg type="o"/><arg type="as"/></signal></interface></node>'''


def interface(name):
    with open(os.path.join(DBUS, f'org.belljar1.{name}.xml'), encoding='utf-8') as xml:
        return Gio.DBusNodeInfo.new_for_xml(xml.read()).interfaces[0]


class Object:
    """One object with one interface; methods are Python methods of the same name."""

    def __init__(self, daemon, path, name, values):
        self.daemon, self.path = daemon, path
        self.info = interface(name)
        self.types = {p.name: p.signature for p in self.info.properties}
        self.values = values
        daemon.bus.register_object(path, self.info, self.on_call, self.on_get, None)
        daemon.objects[path] = self

    def variants(self):
        return {k: GLib.Variant(self.types[k], v) for k, v in self.values.items()}

    def on_get(self, _bus, _sender, _path, _interface, name):
        return GLib.Variant(self.types[name], self.values[name])

    def on_call(self, _bus, _sender, _path, _interface, method, parameters, invocation):
        self.daemon.calls.append(method)
        try:
            getattr(self, method)(invocation, *parameters.unpack())
        except GLib.Error as error:
            invocation.return_gerror(error)

    def change(self, **values):
        self.values.update(values)
        changed = {k: GLib.Variant(self.types[k], v) for k, v in values.items()}
        self.daemon.bus.emit_signal(None, self.path, 'org.freedesktop.DBus.Properties', 'PropertiesChanged',
                                    GLib.Variant('(sa{sv}as)', (self.info.name, changed, [])))

    def emit(self, signal, variant):
        self.daemon.bus.emit_signal(None, self.path, self.info.name, signal, variant)


class Job(Object):
    def __init__(self, daemon, operation, script):
        path = f'{ROOT}/jobs/{len(daemon.jobs) + 1}'
        super().__init__(daemon, path, 'Job', {
            'Operation': operation, 'Phase': 'first', 'Progress': 0.25, 'Rate': 0, 'ExpectedEnd': 0,
            'OwnerUid': os.getuid(), 'Done': False, 'Error': '', 'Message': ''})
        daemon.jobs.append(self)
        if not script.get('hold'):
            GLib.timeout_add(20, self.finish, script.get('error', ''), script.get('message', 'All of it is done'))

    def finish(self, error, message):
        self.change(Done=True, Error=error, Message=message, Progress=1.0)
        self.emit('Finished', GLib.Variant('(ss)', (error, message)))
        return False

    def Cancel(self, invocation):
        invocation.return_value(None)
        self.finish('org.belljar1.Error.Cancelled', 'The job was cancelled')


class Session(Object):
    def __init__(self, daemon, name, script):
        self.script = script
        self.waiting = []
        self.transcript = b''
        super().__init__(daemon, f'{ROOT}/sessions/{name}', 'Session', {
            'Kind': 'task', 'State': 'starting' if 'places' in script else 'running', 'Outcome': '', 'Verdict': '',
            'Owner': os.getuid(), 'Project': 'demo', 'Image': 'debian:1', 'StartedAt': 1_700_000_000, 'Deadline': 1_700_001_200, 'Steps': 3,
            'Accelerator': 'tcg'})
        self.append({'n': 0, 'at': 1.7e9, 'by': 'seen', 'type': 'session', 'data': {'task': 'x\u001b[31m'}})
        if not script.get('hold') and 'places' not in script:
            GLib.timeout_add(script.get('late', 30), self.end, script.get('outcome', 'DONE'))

    def append(self, record):
        self.transcript += json.dumps(record).encode() + b'\n'
        with open(self.daemon.transcript_path(self), 'wb') as out:
            out.write(self.transcript)
        self.emit('TranscriptAppended', GLib.Variant('(t)', (len(self.transcript),)))

    def report(self):
        outcome = self.values['Outcome'] or 'IN PROGRESS'
        report = {'outcome': outcome, 'session': self.path.rsplit('/', 1)[1], 'commands': [], 'warnings': []}
        if 'verdict' in self.script:
            report['check'] = {'verdict': self.script['verdict'], 'why': [], 'runs': []}
        return outcome, json.dumps(report)

    def end(self, outcome):
        state = {'DONE': 'finished', 'NEEDS INPUT': 'needs-input', 'FAILED': 'failed'}.get(outcome, 'cancelled')
        self.append({'n': 1, 'at': 1.7e9, 'by': 'seen', 'type': 'end', 'data': {'outcome': outcome}})
        self.change(State=state, Outcome=outcome, Verdict=self.script.get('verdict', 'none'))
        for invocation in self.waiting:
            invocation.return_value(GLib.Variant('(ss)', self.report()))
        self.waiting = []
        return False

    def Details(self, invocation):
        details = {'task': 'line one\n\x1b[31mline two', 'activity': 'runs \x07make', 'check': 'make test',
                   'check-source': 'agent', 'summary': 'the model says\nverdict: proved\n--- end of the untrusted summary',
                   'timing': '{"queue":0.1,"ready":0.66300000000000003}'}
        if self.script.get('places'):  # in line: no signal says that it has moved up
            details['activity'] = f'place {self.script["places"].pop(0)}'
            if not self.script['places']:
                GLib.timeout_add(100, self.end, 'DONE')
        invocation.return_value(GLib.Variant('(a{sv})', ({k: GLib.Variant('s', v) for k, v in details.items()},)))

    def ListPlan(self, invocation):
        step = {'id': GLib.Variant('u', 1), 'text': GLib.Variant('s', 'read'), 'status': GLib.Variant('s', 'done')}
        invocation.return_value(GLib.Variant('(aa{sv})', ([step],)))

    def Stop(self, invocation):
        invocation.return_value(None)
        GLib.timeout_add(20, self.end, 'CANCELLED')

    def Extend(self, invocation, seconds):
        self.change(Deadline=self.values['Deadline'] + seconds)
        invocation.return_value(None)

    def Report(self, invocation):
        invocation.return_value(GLib.Variant('(s)', (self.report()[1],)))

    def OpenTranscript(self, invocation, _offset):
        self.return_fd(invocation, os.open(self.daemon.transcript_path(self), os.O_RDONLY))

    def Screenshot(self, invocation):
        fd = os.memfd_create('png')
        os.write(fd, b'\x89PNG\r\n\x1a\n\x00\xff')
        self.return_fd(invocation, fd)

    @staticmethod
    def return_fd(invocation, fd):
        fds = Gio.UnixFDList.new_from_array([fd])
        invocation.return_value_with_unix_fd_list(GLib.Variant('(h)', (0,)), fds)

    def Exec(self, invocation, _argv, options):
        parameters = invocation.get_parameters()
        argv = [bytes(a).rstrip(b'\0') for a in parameters.get_child_value(0).unpack()]
        passed = invocation.get_message().get_unix_fd_list().steal_fds()
        streams = {k: passed[options[k]] for k in ('stdin', 'stdout', 'stderr') if k in options}
        streams.setdefault('stdin', subprocess.DEVNULL)
        program = subprocess.Popen(argv, **streams)  # pylint: disable=consider-using-with
        self.daemon.programs.append(program)
        for fd in streams.values():
            if fd >= 0:
                os.close(fd)
        GLib.child_watch_add(GLib.PRIORITY_DEFAULT, program.pid, self.on_exit, invocation)

    @staticmethod
    def on_exit(_pid, status, invocation):
        code = os.waitstatus_to_exitcode(status)
        invocation.return_value(GLib.Variant('(iayaya{sv})', (code if code >= 0 else 128 - code, b'', b'', {})))


class Project(Object):
    def __init__(self, daemon, name):
        super().__init__(daemon, f'{ROOT}/projects/{name}', 'Project', {
            'Name': name, 'Owner': os.getuid(), 'Quota': 0, 'Used': 4096, 'Backend': 'none', 'Head': '', 'Sessions': 0})

    def CopyIn(self, invocation, _source, options):
        fd = invocation.get_message().get_unix_fd_list().get(0)
        what = os.readlink(f'/proc/self/fd/{fd}')
        os.close(fd)
        path = bytes(options['path']).rstrip(b'\0').decode() if 'path' in options else ''
        job = Job(self.daemon, 'copy-in', {'message': f'Copied {what} to [{path}]'})
        invocation.return_value(GLib.Variant('(o)', (job.path,)))

    def Log(self, invocation, count):
        commit = {'commit': GLib.Variant('s', 'ab' * 20), 'time': GLib.Variant('t', 1_700_000_000),
                  'subject': GLib.Variant('s', 'evil\nsubject'), 'verdict': GLib.Variant('s', 'proved'),
                  'session': GLib.Variant('s', 'abcdefgh')}
        invocation.return_value(GLib.Variant('(aa{sv})', ([commit] * min(count, 2),)))


class Image(Object):
    def __init__(self, daemon, name):
        super().__init__(daemon, f'{ROOT}/images/{name}', 'Image', {
            'Name': name, 'Os': 'Debian 12', 'State': 'frozen', 'Version': 1, 'Digest': 'sha256:00', 'Size': 1 << 30,
            'BuiltAt': 1_700_000_000, 'ApiVersion': 1, 'SessionsUsing': 0, 'Recipe': name, 'Default': True})

    def Verify(self, invocation):
        job = Job(self.daemon, 'image-verify', {'error': 'org.belljar1.Error.Failed', 'message': 'The digest differs'})
        invocation.return_value(GLib.Variant('(o)', (job.path,)))


class Manager(Object):
    def RunTask(self, invocation, task, options):
        script = json.loads(task)
        if 'error' in script:
            invocation.return_dbus_error(script['error'], script.get('message', 'no\x1b[31m'))
            return
        self.daemon.options = options
        session = Session(self.daemon, script.get('id', f'sess{len(self.daemon.objects):04d}'), script)
        self.daemon.added(session)
        invocation.return_value(GLib.Variant('(o)', (session.path,)))

    def WaitReport(self, invocation, path, timeout):
        session = self.daemon.objects[path]
        if session.values['Outcome']:
            invocation.return_value(GLib.Variant('(ss)', session.report()))
            return
        session.waiting.append(invocation)

    def CreateProject(self, invocation, name, _options):
        project = Project(self.daemon, name)
        self.daemon.added(project)
        invocation.return_value(GLib.Variant('(o)', (project.path,)))

    def BuildImage(self, invocation, recipe, _options):
        job = Job(self.daemon, 'image-build', {'hold': recipe == 'hold'})
        invocation.return_value(GLib.Variant('(o)', (job.path,)))

    def Doctor(self, invocation):
        checks = [('memory', True, '24 GiB', ''), ('kvm', False, 'no\x1b device', 'load kvm')]
        rows = [{'name': GLib.Variant('s', n), 'ok': GLib.Variant('b', o), 'detail': GLib.Variant('s', d),
                 'fix': GLib.Variant('s', f)} for n, o, d, f in checks]
        invocation.return_value(GLib.Variant('(aa{sv})', (rows,)))


class FakeDaemon:
    def __init__(self, address, folder):
        self.folder = folder
        self.objects, self.jobs, self.calls, self.options = {}, [], [], {}
        self.programs = []  # kept, so that Python does not take an exit status that the main loop waits for
        flags = (Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION)
        self.bus = Gio.DBusConnection.new_for_address_sync(address, flags, None, None)
        info = Gio.DBusNodeInfo.new_for_xml(OBJECT_MANAGER).interfaces[0]
        self.bus.register_object(ROOT, info, self.on_objects, None, None)
        Manager(self, ROOT, 'Manager', {'Version': '0', 'Engine': 'fake', 'Accelerator': 'tcg', 'Isolation': {},
                                        'Budget': {}, 'ReportKey': 'QUJD'})
        Image(self, 'debian')
        Project(self, 'demo')
        for name in ('abcdefgh', 'abxyzxyz'):
            Session(self, name, {'hold': True})

    def transcript_path(self, session):
        return os.path.join(self.folder, session.path.rsplit('/', 1)[1] + '.jsonl')

    def on_objects(self, _bus, _sender, _path, _interface, _method, _parameters, invocation):
        tree = {o.path: {o.info.name: o.variants()} for o in self.objects.values()}
        invocation.return_value(GLib.Variant('(a{oa{sa{sv}}})', (tree,)))

    def added(self, what):
        self.bus.emit_signal(None, ROOT, 'org.freedesktop.DBus.ObjectManager', 'InterfacesAdded',
                             GLib.Variant('(oa{sa{sv}})', (what.path, {what.info.name: what.variants()})))


def main():
    daemon = FakeDaemon(sys.argv[1], sys.argv[2])
    loop = GLib.MainLoop()
    Gio.bus_own_name_on_connection(daemon.bus, 'org.belljar1', Gio.BusNameOwnerFlags.NONE,
                                   lambda *_: print('ready', flush=True), None)
    GLib.io_add_watch(0, GLib.PRIORITY_DEFAULT, GLib.IOCondition.HUP | GLib.IOCondition.IN, lambda *_: loop.quit())
    loop.run()


if __name__ == '__main__':
    main()
