# SPDX-License-Identifier: GPL-3.0-or-later
"""A model that fails in every way, with the real agent, gateway and machine. The parts alone are in test_agent and test_gateway."""
import unittest

from sessions import SessionCase, call, finish, turn


class Model(SessionCase):
    config = '[limits]\npark-after=8\n'
    scenarios = {
        'troubled': [
            turn(call('run', command='echo one'), fault='http-500', times=1),
            turn(call('run', command='echo two'), fault='drop', times=1),
            turn(call('run', command='echo three'), fault='invalid-json', times=1),
            turn(call('no_such_tool', x=1)),
            turn(call('run', command=['not', 'text']), call('run'), call('read_file', path=7)),
            turn(*[call('note', text=f'{i}') for i in range(100)]),
            turn({'name': 'list_dir', 'arguments': {'path': '/'}}),
            {'content': '```json\n{"name": "finish", "arguments": {"summary": "Got through."}}\n```'},
        ],
        'prose': [{'fault': 'flood', 'bytes': 5_000_000, 'times': 1, 'content': 'x'}, finish('After much prose.')],
        'down': [{'fault': 'http-500'}] * 20,
        'slow': [turn(call('run', command='sleep 600')), finish()],
    }

    def test_troubled_but_done(self):
        code, report = self.task('troubled')
        self.assertEqual((code, report['outcome']), (5, 'DONE'), report)
        self.assertEqual(report['summary']['text'], 'Got through.')
        commands = [command['command'] for command in report['commands'] if command['tool'] == 'run']
        self.assertEqual(commands[:3], ['echo one', 'echo two', 'echo three'])

    def test_five_megabytes_of_prose(self):
        code, report = self.task('prose')
        self.assertEqual((code, report['outcome']), (5, 'DONE'), report)

    def test_model_fails_for_good(self):
        code, report = self.task('down')
        self.assertEqual((code, report['outcome']), (1, 'FAILED'), report)
        self.assertEqual(report['error']['name'], 'org.belljar1.Error.ModelUnreachable')

    def test_wall_clock(self):
        """At the end of its time a task is paused and says how far it is; it can be extended, else it ends and is checked."""
        code, report = self.task('slow', '--time', '15s')
        self.assertEqual((code, report['outcome'], report['finished']), (4, 'IN PROGRESS', None), report)
        session = report['session']
        self.assertEqual([limit['limit'] for limit in report['limits']], ['wall-clock'])
        self.assertEqual(self.state(session), 'paused')
        ran = self.daemon.cli('resume', session)
        self.assertEqual(ran.returncode, 1)
        self.assertIn('extend it', ran.stderr)
        self.assertEqual(self.daemon.cli('extend', session, '1h').returncode, 0)
        self.wait_state(session, 'running')
        self.assertEqual(self.daemon.cli('stop', session).returncode, 0)
        code, report = self.task('slow', '--time', '10s')
        self.assertEqual(code, 4, report)
        self.wait_state(report['session'], 'finished')
        code, report = self.daemon.cli_json('report', '--wait', report['session'])
        self.assertEqual((code, report['outcome']), (5, 'DONE'), report)
        self.assertEqual([limit['limit'] for limit in report['limits']], ['wall-clock'])

    def test_stop_while_it_works(self):
        ran = self.daemon.cli_json('task', 'Do it [scenario slow]', '--detach')
        session = ran[1]['session']
        self.wait_state(session, 'running')
        self.assertEqual(self.daemon.cli('stop', session).returncode, 0)
        self.wait_state(session, 'cancelled')
        code, report = self.daemon.cli_json('report', session)
        self.assertEqual((code, report['outcome']), (1, 'CANCELLED'))


class Limits(SessionCase):
    config = '[limits]\nsteps=15\n'
    scenarios = {'forever': {'repeat': True, 'turns': [turn(call('run', command='true'))]}}

    def test_never_finishes(self):
        """The limit of steps ends it; the check is run all the same."""
        code, report = self.task('forever', '--check', 'true')
        self.assertEqual((code, report['outcome'], report['check']['verdict']), (0, 'DONE', 'passes'), report)
        self.assertEqual([limit['limit'] for limit in report['limits']], ['steps'])
        self.assertEqual(report['steps'], 15)


class Unreachable(SessionCase):
    def test_unreachable(self):
        self.model.process.kill()
        self.model.process.wait()
        code, report = self.task('default')
        self.assertEqual((code, report['outcome'], report['error']['name']),
                         (1, 'FAILED', 'org.belljar1.Error.ModelUnreachable'), report)
        self.assertIn('Ollama', report['error']['message'])


class ZAfterwards(SessionCase):
    """The last of these modules: the image that all sessions so far ran on is byte for byte what it was."""

    def test_image_is_unchanged(self):
        ran = self.daemon.cli('image', 'verify', 'debian')
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == '__main__':
    unittest.main(verbosity=2)
