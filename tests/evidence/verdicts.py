# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks that pass for another reason than the work: what the runs showed never adds up to more than they prove."""
from forgeries import ForgeryCase, forgery, proved, record, rows, run_of, session

TRUE = 'true'


class Verdicts(ForgeryCase):
    def test_honest(self):
        """What the forgeries want to look like."""
        self.assertEqual(self.verdict(proved()), ('proved', []))

    def judged(self, change, verdict, *why):
        lines = proved()
        change(lines)
        self.assertEqual(self.verdict(lines), (verdict, list(why)))

    @forgery('check true from the agent', 'set_check true beside the caller\'s check, and its run passes', 'the caller\'s check counts')
    def test_agents_true(self):
        lines = session()
        lines.insert(3, record('set-check', command=TRUE))
        lines.insert(7, run_of('fresh', 0, command=TRUE, source='agent'))
        evidence = self.evidence(lines)
        check = evidence.report['check']
        self.assertEqual((check['command'], check['source'], check['verdict']), ('make test', 'caller', 'failed'))

    @forgery('agent as caller', 'an agent\'s own check whose run says that the caller chose it', 'agent-check')
    def test_agent_as_caller(self):
        lines = proved()
        lines[0] = record('session', baseline='commit-old', baseline_tree='tree-old')
        lines.insert(3, record('set-check', command='make test'))
        check = self.evidence(lines).report['check']
        self.assertEqual((check['source'], check['verdict'], check['why']), ('agent', 'passes', ['agent-check']))

    @forgery('source of its own', 'a check with a source that there is not', 'counts as the agent\'s')
    def test_odd_source(self):
        lines = proved(session={'source': 'daemon'})
        check = self.evidence(lines).report['check']
        self.assertEqual((check['source'], check['why']), ('agent', ['agent-check']))

    @forgery('facts after the end', 'records that pass, behind the one that ends the session', 'nothing after the end counts')
    def test_after_the_end(self):
        lines = session()
        lines[5:7] = []
        lines += [run_of('fresh', 0), run_of('baseline', 1, 'tree-old')]
        self.assertEqual(self.verdict(lines), ('none', ['not-run']))

    @forgery('words before the session', 'a claim before the session\'s own record', 'no report at all')
    def test_before_the_session(self):
        made = self.evidence([record('finish', text='proved'), *session()]).made
        self.assertEqual(made.returncode, 1)
        self.assertIn('comes before the session', made.stderr)

    @forgery('second session record', 'another session\'s record with a check that is true', 'the first binds')
    def test_two_sessions(self):
        lines = session()
        lines.insert(1, record('session', session='efgh2345', check=TRUE, source='caller', baseline='b', baseline_tree='b'))
        lines.insert(7, run_of('fresh', 0, command=TRUE))
        report = self.evidence(lines).report
        self.assertEqual((report['session'], report['check']['command'], report['check']['verdict']),
                         ('abcd2345', 'make test', 'failed'))


def replace(index, *lines):
    def change(records):
        records[index:index + 1] = lines
    return change


FRESH, BASELINE = 5, 6
rows(Verdicts, Verdicts.judged, [
    ('check true', 'the caller\'s check is true', 'baseline-passed', replace(BASELINE, run_of('baseline', 0, 'tree-old')),
     'passes', 'baseline-passed'),
    ('other tree', 'the fresh run was of another tree than the committed one', 'it does not count',
     replace(FRESH, run_of('fresh', 0, 'tree-other')), 'none', 'not-run'),
    ('no tree', 'the fresh run names no tree', 'it does not count', replace(FRESH, run_of('fresh', 0, None)), 'none', 'not-run'),
    ('tree as baseline', 'the baseline\'s run was of the new tree, broken', 'it does not count',
     replace(BASELINE, run_of('baseline', 1, 'tree-new')), 'passes', 'baseline-unclean'),
    ('another command', 'the fresh run is of a command that looks the same', 'it does not count',
     replace(FRESH, run_of('fresh', 0, command='make\u00a0test')), 'none', 'not-run'),
    ('crash as failure', 'the baseline\'s run is killed', 'baseline-unclean', replace(BASELINE, run_of('baseline', -1, 'tree-old',
                                                                                                       signal=9)),
     'passes', 'baseline-unclean'),
    ('not found as failure', 'the baseline has no such program (127)', 'baseline-unclean', replace(BASELINE, run_of('baseline', 127,
                                                                                                                    'tree-old')),
     'passes', 'baseline-unclean'),
    ('timeout as failure', 'the baseline\'s run hangs', 'baseline-unclean',
     replace(BASELINE, run_of('baseline', 1, 'tree-old', timed_out=True)), 'passes', 'baseline-unclean'),
    ('lost as failure', 'the baseline\'s machine is gone', 'baseline-unclean',
     replace(BASELINE, run_of('baseline', 1, 'tree-old', failure='gone')), 'passes', 'baseline-unclean'),
    ('setup as failure', 'the baseline\'s setup fails', 'baseline-unclean',
     replace(BASELINE, run_of('baseline', 1, 'tree-old', setup_failed=True)), 'passes', 'baseline-unclean'),
    ('second time', 'the check passes in one fresh machine of two', 'flaky', replace(FRESH, run_of('fresh', 1), run_of('fresh', 0)),
     'passes', 'flaky'),
    ('first time', 'the check passes in the first fresh machine only', 'flaky', replace(FRESH, run_of('fresh', 0), run_of('fresh', 7)),
     'passes', 'flaky'),
    ('zero with a signal', 'a run that was killed and says exit 0', 'not a pass', replace(FRESH, run_of('fresh', 0, signal=15)),
     'failed', 'check-unclean'),
    ('zero and out of time', 'a run that hangs after it said exit 0', 'not a pass', replace(FRESH, run_of('fresh', 0, timed_out=True)),
     'failed', 'timeout'),
    ('zero without an answer', 'a run that lost its machine and says exit 0', 'not a pass',
     replace(FRESH, run_of('fresh', 0, failure='no answer', lost=True)), 'failed', 'machine-gone'),
    ('only here', 'the check passes in the session\'s own machine alone', 'passes-here',
     replace(FRESH, run_of('same', 0, None), run_of('fresh', 1), run_of('fresh', 1)), 'passes-here', 'check-failed'),
    ('own machine as fresh', 'a run in the session\'s machine under the name of a place that there is not', 'it does not count',
     replace(FRESH, run_of('fresh\u200b', 0)), 'none', 'not-run'),
    ('protected files changed', 'tests were edited and the check passes with them', 'inputs-changed',
     replace(4, record('tree', tree='tree-new', protected='tree-protected')), 'passes', 'inputs-changed'),
    ('protected run of another tree', 'the run with the old tests was of the new ones', 'inputs-changed',
     replace(4, record('tree', tree='tree-new', protected='tree-protected'), run_of('protected', 0, 'tree-new')), 'passes',
     'inputs-changed'),
    ('no protected tree', 'protected files cannot be put back', 'inputs-changed', replace(4, record('tree', tree='tree-new')),
     'passes', 'inputs-changed'),
])
