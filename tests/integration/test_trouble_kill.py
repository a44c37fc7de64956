# SPDX-License-Identifier: GPL-3.0-or-later
"""belljard dies at every step of a session, right after the step was begun or done: the next one puts everything in order."""
import contextlib
import os
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

WORK = turn(call('write_file', path='made.txt', content='kept\n'))
DEATH_S = 120


class Kill(SessionCase):
    scenarios = {
        'work': [WORK, finish()],
        'ask': [turn(*WORK['tool_calls'], call('ask', question='On?')), finish('With an answer.')],
    }
    config = '[limits]\npark-after=1\n'

    def project(self, name):
        return os.path.join(self.daemon.state_dir, 'projects', name, 'work')

    @contextlib.contextmanager
    def dies_at(self, fault):
        """Restarts belljard so that it dies there; afterwards starts one that does not."""
        os.environ['BELLJAR_FAULT'] = fault
        try:
            self.daemon.end()
            self.daemon.start()
        finally:
            del os.environ['BELLJAR_FAULT']
        yield
        bt.wait_until(lambda: self.daemon.process.poll() is not None, f'belljard to die at {fault}', DEATH_S)
        self.daemon.start()

    def begin(self, scenario, project):
        ran = self.daemon.cli('task', f'Do it [scenario {scenario}]', '--project', project, '--detach')
        return ran.stdout.strip() or self.newest(project)

    def newest(self, project):
        return [row['session'] for row in self.daemon.cli_json('sessions')[1] if row['project'] == project][0]

    def check_over(self, session, project):
        """Settled, verifiable, nothing left, and the project can be worked on."""
        self.assertIn(self.state(session), ('failed', 'finished'))
        bt.wait_until(lambda: not bt.machines_of(self.daemon.state_dir), 'machines to be gone', 60)
        report = self.daemon.cli_json('report', session)[1]
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0, report)
        left = set(os.listdir(os.path.join(self.daemon.state_dir, 'sessions', session)))
        self.assertLessEqual(left, {'evidence'})
        code, again = self.daemon.cli_json('task', 'Do it [scenario work]', '--project', project)
        self.assertEqual((code, again['outcome']), (5, 'DONE'), again)
        return report

    def test_work(self):
        """Whatever the session had written is in the folder and in the history."""
        for step in ('baseline', 'machine-start', 'tree', 'commit'):
            for point in ('begun', 'done'):
                with self.subTest(fault=f'{step}:{point}'):
                    project = f'{step}-{point}'
                    self.import_project(project, {'a.txt': 'a\n'})
                    with self.dies_at(f'{step}:{point}'):
                        session = self.begin('work', project)
                    report = self.check_over(session, project)
                    if step in ('tree', 'commit'):
                        with open(os.path.join(self.project(project), 'made.txt'), encoding='utf-8') as file:
                            self.assertEqual(file.read(), 'kept\n')
                        self.assertTrue(report['commit'], report)

    def ask(self, project):
        self.import_project(project, {'a.txt': 'a\n'})
        return self.begin('ask', project)

    def finish_asking(self, session):
        """The wait has outlived it: an answer brings the session to its end."""
        with contextlib.suppress(AssertionError):
            self.wait_state(session, 'needs-input', seconds=20)
        if self.state(session) == 'needs-input':
            self.assertEqual(self.daemon.cli('answer', '--detach', session, 'yes').returncode, 0)
        code, report = self.daemon.cli_json('report', '--wait', session)
        self.assertEqual((code, report['outcome'], report['summary']['text']), (5, 'DONE', 'With an answer.'), report)
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)
        self.assertEqual([change['path'] for change in report['files_changed']], ['made.txt'])

    def test_question(self):
        """Before the question is kept there is no session to go on with; from then on nothing loses it."""
        with self.dies_at('ask:begun'):
            session = self.ask('ask-begun')
        self.check_over(session, 'ask-begun')
        for fault in ('ask:done', 'park:begun', 'park:saved', 'park:done'):
            with self.subTest(fault=fault):
                with self.dies_at(fault):
                    session = self.ask(fault.replace(':', '-'))
                self.finish_asking(session)

    def test_answer(self):
        """An answer that was taken counts, whatever happens before the machine is back."""
        for fault in ('answer:kept', 'return:begun', 'return:unparked', 'return:done'):
            with self.subTest(fault=fault):
                with self.dies_at(fault):
                    session = self.ask(fault.replace(':', '-'))
                    self.wait_state(session, 'needs-input')
                    self.daemon.cli('answer', '--detach', session, 'yes')
                self.finish_asking(session)


if __name__ == '__main__':
    unittest.main(verbosity=2)
