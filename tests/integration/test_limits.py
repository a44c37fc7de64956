# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of sessions and of callers: each one that is reached is an error that names its key, or a fact in the report."""
import os
import unittest

from gi.repository import GLib

from sessions import SessionCase, call, finish, turn

IDLE_S = 4


class Limits(SessionCase):
    scenarios = {'shots': [*[turn(call('screenshot'))] * 4, finish('Four were asked for.')]}
    capabilities = 'tools,vision'
    config = f'[limits]\nidle={IDLE_S}\nsessions-per-user=2\nscreenshots=3\n'

    def limits(self, session):
        report = self.daemon.cli_json('report', session)[1]
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)
        return report['outcome'], report['limits']

    def refused(self, function, *parts):
        with self.assertRaises(GLib.Error) as caught:
            function()
        self.assertIn('org.belljar1.Error.Limit', caught.exception.message)
        for part in parts:
            self.assertIn(part, caught.exception.message)

    def test_idle(self):
        """A person who paused a session has time, and so has a silent command; who does nothing has not. And two are enough for one."""
        paused = self.open_session(network='none')
        self.proxy(paused).Pause()
        silent = self.open_session(network='none')
        self.refused(lambda: self.open_session(network='none'), '[limits] sessions-per-user is 2')
        self.assertEqual(self.execute(silent, 'sleep', str(IDLE_S + 2)).returncode, 0)
        self.wait_state(silent, 'finished')
        self.assertEqual(self.limits(silent), ('DONE', [{'limit': 'idle', 'value': IDLE_S}]))
        commands = self.daemon.cli_json('report', silent)[1]['commands']
        self.assertEqual([(command['exit'], command['timed_out']) for command in commands], [(0, False)])
        self.assertGreater(commands[0]['duration_s'], IDLE_S)
        self.assertIn(f'\nlimit hit:   idle ({IDLE_S})\n', self.daemon.cli('report', silent).stdout)
        ran = self.execute(silent, 'true')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'[limits] idle', ran.stderr)
        self.assertEqual(self.state(paused), 'paused')
        self.proxy(paused).Resume()
        self.wait_state(paused, 'finished')
        self.assertEqual(self.limits(paused), ('DONE', [{'limit': 'idle', 'value': IDLE_S}]))

    def test_screenshots(self):
        session = self.open_session(network='none')
        for _ in range(3):
            self.proxy(session).call_with_unix_fd_list_sync('Screenshot', None, 0, -1, None, None)
        for _ in range(2):
            self.refused(lambda: self.proxy(session).call_sync('Screenshot', None, 0, -1, None), '[limits] screenshots is 3')
        self.stop(session)
        self.assertEqual(self.limits(session), ('DONE', [{'limit': 'screenshots', 'value': 3}]))
        code, report = self.task('shots')
        self.assertEqual((code, report['outcome'], report['summary']['text']), (5, 'DONE', 'Four were asked for.'), report)
        self.assertEqual(report['limits'], [{'limit': 'screenshots', 'value': 3}])

    def test_screenshots_on_disk(self):
        """The last one of the class: it changes the configuration."""
        self.daemon.end()
        self.daemon.config = '[limits]\nscreenshot-bytes=1K\n'
        self.daemon.write_config()
        self.daemon.start()
        session = self.open_session(network='none')
        for _ in range(2):
            self.refused(lambda: self.proxy(session).call_sync('Screenshot', None, 0, -1, None), '[limits] screenshot-bytes is 1024')
        self.assertEqual(os.listdir(os.path.join(self.daemon.state_dir, 'sessions', session, 'evidence', 'screenshots')), [])
        self.stop(session)
        self.assertEqual(self.limits(session), ('DONE', [{'limit': 'screenshot-bytes', 'value': 1024}]))


if __name__ == '__main__':
    unittest.main(verbosity=2)
