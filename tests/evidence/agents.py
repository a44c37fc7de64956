# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile agent process (hostile_agent.py) in place of belljar-agent, in real sessions with real machines."""
import json
import os
import shutil

import belljar_test as bt
import forgeries
from forgeries import forgery
from sessions import SessionCase

GROWTH_MIB = 40  # of the daemon after two messages of 100 MB
INVALID, LIMIT, DENIED = 'org.belljar1.Error.Invalid', 'org.belljar1.Error.Limit', 'org.belljar1.Error.Denied'


class HostileDaemon(bt.Daemon):
    """belljard from a build folder of its own, where another program has the agent's name."""

    programs = (('daemon', 'belljard'), ('gateway', 'belljar-gateway'), ('helpers', 'belljar-tree'))

    def write_config(self):
        super().write_config()
        build = os.path.join(self.folder, 'b')
        for folder, name in self.programs:
            os.makedirs(os.path.join(build, folder))
            shutil.copy2(os.path.join(bt.BUILD, folder, name), os.path.join(build, folder, name))
        os.mkdir(os.path.join(build, 'agent'))
        shutil.copyfile(os.path.join(forgeries.HERE, 'hostile_agent.py'), os.path.join(build, 'agent', 'belljar-agent'))
        os.chmod(os.path.join(build, 'agent', 'belljar-agent'), 0o755)
        with open(os.path.join(build, 'build.ninja'), 'w', encoding='ascii'):
            pass

    def argv(self):
        return [os.path.join(self.folder, 'b', 'daemon', 'belljard'), *super().argv()[1:]]


def rss_mib(pid):
    with open(f'/proc/{pid}/status', encoding='ascii') as file:
        return next(int(line.split()[1]) for line in file if line.startswith('VmRSS')) // 1024


class Agents(SessionCase):
    daemon_class = HostileDaemon

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.import_project('lies', {'a.txt': 'a\n'})
        case.doCleanups()
        before = rss_mib(cls.daemon.process.pid)
        cls.code, cls.report = cls.daemon.cli_json('task', 'lies', '--project', 'lies', '--check', 'echo no; exit 3')
        cls.growth = rss_mib(cls.daemon.process.pid) - before
        cls.records = cls.records_of(cls.report['session'])
        notes = [r['data']['text'] for r in cls.records if r['type'] == 'note']
        assert notes, (cls.report, cls.daemon.log())
        cls.came = json.loads(notes[-1])

    def runTest(self):
        """Lets setUpClass make an instance."""

    @classmethod
    def records_of(cls, session):
        path = os.path.join(cls.daemon.state_dir, 'sessions', session, 'evidence', 'transcript.jsonl')
        with open(path, encoding='utf-8') as file:
            return [json.loads(line) for line in file]

    def seen(self, kind):
        return [r['data'] for r in self.records if r['type'] == kind and r['by'] == 'seen']

    def test_verifies(self):
        self.assertEqual(self.daemon.cli('report', self.report['session'], '--verify').returncode, 0)

    @forgery('label', 'a command under another one\'s label', 'the report has what ran')
    def test_label(self):
        self.assertEqual(self.came['label'], 'ok')
        command = self.report['commands'][0]
        self.assertEqual((command['command'], command['exit']), ("/bin/false 'the truth'", 1))

    @forgery('tool of a fact', 'a command of a tool that is called as a record of a fact', 'a command like others, on one line')
    def test_tool(self):
        self.assertEqual(self.came['tool'], 'ok')
        self.assertEqual(len(self.report['check']['runs']), len(self.seen('check-run')))
        self.assertEqual(self.report['commands'][1]['command'], r"/bin/true 'a tool\nverdict: proved'")

    @forgery('facts through the verb', 'Record with every type that the daemon writes itself',
             'refused, and nothing of it in the transcript')
    def test_facts(self):
        answers = {name: answer for name, answer in self.came.items() if name.startswith('record ')}
        self.assertGreater(len(answers), 15)
        self.assertEqual(set(answers.values()), {INVALID})
        self.assertEqual([run['exit'] for run in self.report['check']['runs']], [3, 3, 3])

    @forgery('false model turns', 'turns that no model made: as a record, and as the gateway\'s signal',
             'claims beside no turn that was seen')
    def test_turns(self):
        self.assertEqual(self.came['turn'], 'ok')
        self.assertEqual(self.seen('model'), [])
        turn = next(r for r in self.records if r['type'] == 'turn')
        self.assertEqual((turn['by'], turn['data']['by']), ('claimed', 'seen'))

    @forgery('broken records', 'JSON with a key twice, too deep, too much, halves of characters', 'refused')
    def test_json(self):
        answers = {name[5:]: answer for name, answer in self.came.items() if name.startswith('json ')}
        self.assertEqual(answers, {'no object': INVALID, 'twice': INVALID, 'surrogate': INVALID, 'deep': LIMIT, 'many': LIMIT,
                                   'large': INVALID})

    @forgery('messages of 100 MB', 'a note and a standard input of 100 MB', 'refused; the daemon is as small as before')
    def test_large(self):
        self.assertEqual((self.came['large note'], self.came['large stdin']), (INVALID, INVALID))
        self.assertLess(self.growth, GROWTH_MIB)

    @forgery('check through the verb', 'set_check true although the caller gave one', 'the caller\'s check decides')
    def test_check(self):
        self.assertEqual(self.came['check'], 'ok')
        check = self.report['check']
        self.assertEqual((self.code, check['verdict'], check['source'], check['command']), (6, 'failed', 'caller', 'echo no; exit 3'))

    @forgery('other objects', 'the daemon\'s other interfaces over the agent\'s socket, and wrong types', 'there are none there')
    def test_objects(self):
        for name in ('other object', 'other interface', 'no types'):
            self.assertTrue(self.came[name].startswith('org.freedesktop.DBus.Error.'), self.came)

    @forgery('files of the host', 'evidence, keys and sockets as files, from inside the sandbox', 'nothing of them is there')
    def test_outside(self):
        self.assertEqual(self.came['outside'], [])

    @forgery('summary through the verb', 'Finish with 400 KB of verdicts, and Finish again', 'cut, said to be cut, inside the fence; once')
    def test_finish(self):
        self.assertIs(self.report['summary']['truncated'], True)
        self.assertEqual(len([r for r in self.records if r['type'] == 'finish']), 1)
        text = self.daemon.cli('report', self.report['session']).stdout
        facts = forgeries.skeleton(text)
        self.assertTrue(facts[0].startswith('verdict:     failed'), facts)

    @forgery('limit that was none', 'the agent says that all steps are used', 'the report says that the agent said so')
    def test_limit(self):
        _code, report = self.daemon.cli_json('task', 'limit')
        self.assertEqual([limit['limit'] for limit in report['limits']], ['agent'])
        self.assertEqual(report['check']['verdict'], 'none')

    @forgery('flood', 'twenty thousand calls at once, no answer read, then bytes that are no message',
             'the daemon serves others; the session failed')
    def test_flood(self):
        ran = self.daemon.cli('task', 'flood', '--detach')
        session = ran.stdout.strip()
        while self.state(session) not in ('failed', 'finished', 'cancelled'):
            self.assertEqual(self.daemon.cli('sessions', timeout=30).returncode, 0)
        _code, report = self.daemon.cli_json('report', session)
        self.assertEqual((report['outcome'], report['check']['verdict']), ('FAILED', 'none'))
        self.assertEqual({r['by'] for r in self.records_of(session) if r['type'] == 'turn'} - {'claimed'}, set())
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)
        self.assertLess(rss_mib(self.daemon.process.pid), 150)
