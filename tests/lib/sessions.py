# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions for integration tests: one daemon and one scripted model for all tests of a class."""
import json
import os
import shutil
import tempfile
import unittest

from gi.repository import Gio, GLib

import belljar_test as bt

PROJECTS = os.path.join(bt.ROOT, 'tests', 'replay', 'projects')
SCENARIOS = os.path.join(bt.ROOT, 'tests', 'replay', 'scenarios')


def call(tool, **arguments):
    return {'name': tool, 'arguments': arguments}


def turn(*calls, **more):
    return {'content': 'Going on.', 'tool_calls': list(calls), **more}


def finish(summary='Done.'):
    return turn(call('finish', summary=summary))


class SessionCase(unittest.TestCase):
    """Subclasses give `scenarios`, name to list of turns, and perhaps `config` and `capabilities`."""

    scenarios = {}
    config = ''
    capabilities = 'tools'  # of the model
    daemon_class = bt.Daemon

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='bj-scenarios-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name, turns in {'default': [finish()], **cls.scenarios}.items():
            scenario = turns if isinstance(turns, dict) else {'turns': turns}
            with open(os.path.join(cls.folder, name + '.json'), 'w', encoding='utf-8') as out:
                json.dump(scenario, out)
        for name in os.listdir(SCENARIOS):
            shutil.copy(os.path.join(SCENARIOS, name), cls.folder)
        cls.model = bt.Replay(cls.folder + '/', '--capabilities', cls.capabilities)
        cls.addClassCleanup(cls.model.close)
        cls.daemon = cls.enterClassContext(cls.daemon_class(model=cls.model, config=cls.config))

    def import_project(self, name, files):
        """A project with @files, path to content."""
        folder = tempfile.mkdtemp(prefix='bj-project-')
        self.addCleanup(shutil.rmtree, folder)
        for path, content in files.items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, 'w', encoding='utf-8') as out:
                out.write(content)
        self.import_folder(name, folder)

    def import_folder(self, name, folder):
        ran = self.daemon.cli('project', 'import', name, folder)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def task(self, scenario, *options):
        """Runs a task by its scenario. Returns (exit code, report)."""
        return self.daemon.cli_json('task', f'Do it [scenario {scenario}]', *options)

    def open_session(self, **options):
        """Returns the id of a session without an agent that is running."""
        typed = {key: GLib.Variant('s', value) for key, value in options.items()}
        path = self.daemon.manager().OpenSession('(a{sv})', typed)
        self.wait_state(path, 'running')
        return path.rsplit('/', 1)[1]

    def proxy(self, session):
        path = session if session.startswith('/') else f'/org/belljar1/sessions/{session}'
        return Gio.DBusProxy.new_sync(self.daemon.connection, Gio.DBusProxyFlags.NONE, None, 'org.belljar1', path,
                                      'org.belljar1.Session', None)

    def state(self, session):
        path = session if session.startswith('/') else f'/org/belljar1/sessions/{session}'
        answer = self.daemon.connection.call_sync('org.belljar1', path, 'org.freedesktop.DBus.Properties', 'Get',
                                                  GLib.Variant('(ss)', ('org.belljar1.Session', 'State')), None,
                                                  Gio.DBusCallFlags.NONE, -1, None)
        return answer.unpack()[0]

    def wait_state(self, session, *states, seconds=180):
        over = ('finished', 'failed', 'cancelled')

        def arrived():
            now = self.state(session)
            if now in over and now not in states:
                raise AssertionError(f'{session} is {now}, not {states}\n{self.daemon.log()}')
            return now in states
        bt.wait_until(arrived, f'{session} to be {states}', seconds)

    def execute(self, session, *argv, timeout=300, **options):
        """belljar exec. Returns its CompletedProcess with bytes."""
        extra = [word for key, value in options.items() for word in (f'--{key}', str(value))]
        return self.daemon.cli('exec', *extra, session, '--', *argv, timeout=timeout, text=False)

    def stop(self, session):
        ran = self.daemon.cli('stop', session)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.wait_state(session, 'finished', 'failed', 'cancelled')
