# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines that lie, and checks that pass only there: real sessions, few of them, many forgeries in each."""
import os
import shutil
import subprocess
import tempfile

import belljar_test as bt
import forgeries
from forgeries import forgery
from sessions import SessionCase, call, finish, turn

GUEST = os.path.join(bt.ROOT, 'guest')
# Every command ends well, whatever it did.
LIE = '#include <sys/wait.h>\n#undef WIFEXITED\n#undef WEXITSTATUS\n#define WIFEXITED(s) 1\n#define WEXITSTATUS(s) 0\n'

# What committed code tries as the user that runs the check; a line "did" is a way up.
CLIMB = r'''try() { "$@" >/dev/null 2>&1 </dev/null && echo "did: $*"; }
try cp lie /usr/lib/belljar/run
try sh -c 'cat lie >/usr/lib/belljar/run'
try mv /usr/lib/belljar /usr/lib/belljar-gone
try ln -sf "$PWD/lie" /usr/lib/belljar/run
try mount --bind lie /usr/lib/belljar/run
for port in /dev/vport* /dev/virtio-ports/* /dev/vda /dev/vdb /dev/mem; do [ -e "$port" ] && try sh -c "printf x >>$port"; done
for pid in $(pgrep -x belljar-lane) $(pgrep -x qemu-ga) $(pgrep -x run); do try kill -KILL "$pid"; try kill -STOP "$pid"; done
try systemctl stop belljar-lane@control.service
try systemctl restart qemu-guest-agent.service
try sudo -n true
try su root -c true
try sh -c 'echo /x >/etc/ld.so.preload'
try sh -c 'echo x >/proc/sys/kernel/core_pattern'
try chown root lie
try setcap cap_sys_admin+ep lie
try ls /root
for file in /run/belljar/*; do try sh -c "printf x >>$file"; done
echo climbed
grep -q right code.txt
'''

# name: how the session's machine is prepared, and what the check asks
TRICKS = {
    'left in /tmp': ('touch /tmp/left /dev/shm/left', 'test -e /tmp/left && test -e /dev/shm/left'),
    'file outside': ('touch /opt/only-here', 'test -e /opt/only-here'),
    'home folder': ('mkdir -p /home/check/.cache && touch /home/check/.cache/ok && chown -R check: /home/check', 'test -e ~/.cache/ok'),
    'file in .git': ('mkdir .git && echo yes >.git/answer', 'test -e .git/answer'),
    'file that was moved aside': ('mkdir .git-from-guest-9 && echo yes >.git-from-guest-9/answer', 'test -e .git-from-guest-9/answer'),
    'pipe in the folder': ('mkfifo pipe', 'test -p pipe'),
    'empty folder': ('mkdir empty', 'test -d empty'),
    'program in the path': ('printf "#!/bin/sh\n" >/usr/local/bin/prove-it && chmod +x /usr/local/bin/prove-it', 'prove-it'),
    'module of the system': ('echo >/usr/lib/python3/dist-packages/proof.py', 'python3 -c "import proof"'),
    'server in the machine': ('', 'python3 -c "import urllib.request as u; u.urlopen(\'http://127.0.0.1:8123/\', timeout=5)"'),
    'marks of an earlier run': ('cd /tmp && sh /work/tricks/tricks.sh; cd /work/tricks', 'test -e /tmp/ran'),
}
# Shown by name and by what it gave; passes when any trick works.
CHECK = 'ok=1\n' + ''.join(f'if {ask} 2>/dev/null; then echo "[{name}] worked"; ok=0; else echo "[{name}] failed"; fi\n'
                           for name, (_prepare, ask) in TRICKS.items()) + 'touch /tmp/ran 2>/dev/null\necho "exit 0" >tricks.sh\nexit $ok\n'
# The copy in /tmp is what edits itself when the model runs it; "tricks.sh" is relative.
PREPARE = 'set -e\n' + '\n'.join(prepare for prepare, _ask in TRICKS.values()) + '\nchmod 666 /tmp/ran /tmp/tricks.sh\n'
RESTARTED = 'until [ -e /tmp/restarted ]; do sleep 0.1; done'
SETTINGS = '[check]\ncommand=sh always.sh\n'


def tasks_of(report):
    return {where: [run for run in report['check']['runs'] if run['where'] == where] for where in ('same', 'fresh', 'baseline',
                                                                                                   'protected')}


class Guests(SessionCase):
    scenarios = {
        'liar': [turn(call('start', command='while :; do date +%s%N >beat.txt; sleep 0.02; done')),
                 turn(call('run', command='cp lie /tmp/run && mv /tmp/run /usr/lib/belljar/run')),
                 turn(call('start', command='sleep 0.5; systemctl restart belljar-lane@control.service belljar-lane@bulk.service; '
                                            'touch /tmp/restarted')),
                 turn(call('run', command=RESTARTED)), turn(call('run', command=RESTARTED)),  # the first may go with the old server
                 turn(call('run', command='exit 7')), finish('All tests pass.')],
        'tricks': [turn(call('start', command='cd /tmp && python3 -m http.server --bind 127.0.0.1 8123')),
                   turn(call('run', command=PREPARE)), turn(call('write_file', path='belljar.ini', content=SETTINGS)), finish()],
        'setup': [turn(call('write_file', path='prepare.sh', content='echo right >code.txt\n')), finish('Mended.')],
    }

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        try:
            cls.run_liar(case)
            cls.tricks = case.run_task('tricks', {'tricks.sh': CHECK}, '--check', 'sh tricks.sh')
            cls.setup = case.run_task('setup', {'belljar.ini': '[check]\ncommand=grep -q right code.txt\nsetup=sh prepare.sh\n',
                                                'prepare.sh': 'true\n', 'code.txt': 'wrong\n'})
        finally:
            case.doCleanups()

    def runTest(self):
        """Lets setUpClass make an instance."""

    def run_task(self, name, files, *options):
        self.import_project(name, files)
        return self.task(name, '--project', name, *options)[1]

    @classmethod
    def run_liar(cls, case):
        folder = tempfile.mkdtemp(prefix='bj-liar-')
        case.addCleanup(shutil.rmtree, folder)
        for name, text in (('check.sh', CLIMB), ('code.txt', 'wrong\n'), ('../lie.h', LIE)):
            with open(os.path.join(folder, os.path.basename(name)), 'w', encoding='utf-8') as out:
                out.write(text)
        sources = [os.path.join(GUEST, name) for name in os.listdir(GUEST) if name.endswith('.c') and name != 'bj-init-main.c']
        subprocess.run(['gcc', '-static', '-O2', '-D_GNU_SOURCE', '-include', os.path.join(folder, 'lie.h'), '-o',
                        os.path.join(folder, 'lie'), *sources], check=True)
        case.import_folder('liar', folder)
        started = case.daemon.cli('task', 'Do it [scenario liar]', '--project', 'liar', '--check', 'sh check.sh', '--detach')
        session = started.stdout.strip()
        cls.second = case.daemon.cli('task', 'x [scenario default]', '--project', 'liar')
        case.wait_state(session, 'finished', 'failed', seconds=200)
        cls.liar = case.daemon.cli_json('report', session)[1]

    def git(self, project, *arguments):
        repo = os.path.join(self.daemon.state_dir, 'projects', project, 'repo.git')
        return subprocess.run(['git', '-c', 'safe.directory=*', '-C', repo, *arguments], check=True, capture_output=True, text=True).stdout

    def test_all_verify(self):
        for report in (self.liar, self.tricks, self.setup):
            self.assertEqual(self.daemon.cli('report', report['session'], '--verify').returncode, 0)

    @forgery('lying guest', 'the program that runs commands is replaced by root in the session\'s machine: every exit code is 0',
             'at most passes-here: fresh machines have their own')
    def test_liar(self):
        runs = tasks_of(self.liar)
        self.assertEqual(self.liar['commands'][-1]['exit'], 0, f'the liar is at work: this was exit 7: {self.liar["commands"]}')
        self.assertEqual([run['exit'] for run in runs['same']], [0], runs)
        self.assertEqual([run['exit'] for run in runs['fresh'] + runs['baseline']], [1, 1, 1])
        self.assertEqual((self.liar['check']['verdict'], self.liar['check']['why']), ('passes-here', ['check-failed']))

    @forgery('lying check', 'committed code replaces the program, kills it, writes to its ports and asks for root, as the user of checks',
             'nothing of it works in a fresh machine')
    def test_climb(self):
        runs = tasks_of(self.liar)
        for run in runs['fresh'] + runs['baseline']:
            self.assertIn('climbed\n', run['tail'])
            self.assertNotIn('did:', run['tail'])
            self.assertEqual(run['exit'], 1)

    @forgery('folder that goes on changing', 'a process in the background writes all the time, also while the tree is written',
             'the commit, its check and the folder afterwards are one tree')
    def test_beat(self):
        committed = self.git('liar', 'show', f"{self.liar['tree']}:beat.txt")
        with open(os.path.join(self.daemon.state_dir, 'projects', 'liar', 'work', 'beat.txt'), encoding='ascii') as file:
            self.assertEqual(file.read(), committed)
        self.assertEqual(self.git('liar', 'rev-parse', 'HEAD', 'HEAD^{tree}').split(), [self.liar['commit'], self.liar['tree']])
        self.assertEqual({run['tree'] for run in tasks_of(self.liar)['fresh']}, {self.liar['tree']})

    @forgery('second session', 'another session on the folder while one works', 'refused, and the project is named')
    def test_second(self):
        self.assertEqual((self.second.returncode, self.second.stdout), (1, ''))
        self.assertIn('liar', self.second.stderr)

    def tricked(self, name):
        runs = tasks_of(self.tricks)
        self.assertIn(f'[{name}] worked', runs['same'][0]['tail'], 'the trick works where it was prepared')
        for run in runs['fresh']:
            self.assertIn(f'[{name}] failed', run['tail'])

    @forgery('check that edits itself', 'the check overwrites itself with exit 0', 'the commit has the check that was asked for')
    def test_self(self):
        self.assertEqual(self.git('tricks', 'show', f"{self.tricks['tree']}:tricks.sh"), CHECK)
        self.assertEqual([run['exit'] for run in tasks_of(self.tricks)['fresh']], [1, 1])

    @forgery('passes here', 'a check that rests on many things of the session\'s machine',
             'passes-here, and warnings name what was left out')
    def test_passes_here(self):
        self.assertEqual((self.tricks['check']['verdict'], self.tricks['check']['why']), ('passes-here', ['check-failed']))
        for name in ('pipe', '.git-from-guest-9', '.git'):
            self.assertTrue(any(f'"{name}" was' in warning for warning in self.tricks['warnings']), self.tricks['warnings'])

    @forgery('check of the next session', 'the session writes a belljar.ini, which the next one takes for the project\'s own',
             'a warning says so')
    def test_settings(self):
        self.assertTrue(any('changed belljar.ini' in warning for warning in self.tricks['warnings']), self.tricks['warnings'])

    @forgery('setup edited', 'the script of the setup, which runs as root before the check, makes it pass', 'inputs-changed')
    def test_setup(self):
        runs = {where: [run['exit'] for run in runs] for where, runs in tasks_of(self.setup).items()}
        self.assertEqual(runs, {'same': [1], 'fresh': [0], 'baseline': [1], 'protected': [1]})
        self.assertEqual((self.setup['check']['verdict'], self.setup['check']['why']), ('passes', ['inputs-changed']))


forgeries.rows(Guests, Guests.tricked, [
    (name, f'a check that asks for what only the session\'s machine has: {ask}', 'it fails in every fresh machine', name)
    for name, (_prepare, ask) in TRICKS.items()])
