# SPDX-License-Identifier: GPL-3.0-or-later
"""The command against a stand-in daemon: exit codes, JSON, escaping, Ctrl-C, streams."""
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get('BELLJAR_BUILD', os.path.join(HERE, '..', '..', 'build'))
CLI = os.path.join(BUILD, 'cli', 'belljar')
COMPLETION = os.path.join(HERE, '..', '..', 'data', 'completions', 'belljar')
DEADLINE = 60


class CliTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='bj-cli-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.bus = cls.start(['dbus-daemon', '--session', '--nofork', '--print-address',
                             f'--address=unix:path={cls.folder}/bus'])
        cls.address = cls.bus.stdout.readline().strip()
        cls.daemon = cls.start([sys.executable, os.path.join(HERE, 'fake_daemon.py'), cls.address, cls.folder])
        assert cls.daemon.stdout.readline() == 'ready\n'

    @classmethod
    def start(cls, argv):
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(cls.end, process)
        return process

    @staticmethod
    def end(process):
        process.stdin.close()
        process.terminate()
        process.wait(DEADLINE)
        process.stdout.close()

    def environ(self, **more):
        return {**os.environ, 'BELLJAR_BUS': self.address, 'LC_ALL': 'C', **more}

    def belljar(self, *args, **options):
        return subprocess.run([CLI, *args], env=self.environ(), capture_output=True, timeout=DEADLINE, check=False,
                              **options)

    def task(self, *args, **script):
        return self.belljar('task', json.dumps(script), *args)

    def test_exit_code_of_each_outcome(self):
        cases = [('DONE', 'proved', 0), ('DONE', 'passes', 0), ('DONE', 'passes-here', 5), ('DONE', 'none', 5),
                 ('DONE', 'failed', 6), ('NEEDS INPUT', 'none', 3), ('FAILED', 'none', 1), ('CANCELLED', 'none', 1),
                 ('DONE', 'invented', 1), ('INVENTED', 'proved', 1)]
        for outcome, verdict, code in cases:
            with self.subTest(outcome=outcome, verdict=verdict):
                ran = self.task(outcome=outcome, verdict=verdict)
                self.assertEqual(ran.returncode, code, ran.stderr)
                self.assertIn(outcome.encode(), ran.stdout)

    def test_no_check_is_unproved(self):
        self.assertEqual(self.task(outcome='DONE').returncode, 5)

    def test_json_is_one_value_and_progress_stays_away(self):
        ran = self.task('--json', outcome='DONE', verdict='proved', late=800)
        report = json.loads(ran.stdout)
        self.assertEqual(report['check']['verdict'], 'proved')
        self.assertIn(report['session'].encode(), ran.stderr)

    def test_report_in_progress(self):
        ran = self.belljar('report', 'abc', '--json')
        self.assertEqual(ran.returncode, 4)
        self.assertEqual(json.loads(ran.stdout)['outcome'], 'IN PROGRESS')

    def test_detach(self):
        ran = self.task('--detach', hold=True, id='detached')
        self.assertEqual((ran.returncode, ran.stdout), (0, b'detached\n'))
        ran = self.task('--detach', '--json', hold=True, id='detachen')
        self.assertEqual(json.loads(ran.stdout), {'outcome': 'IN PROGRESS', 'session': 'detachen'})

    def test_errors_of_the_daemon(self):
        ran = self.task(error='org.belljar1.Error.Busy', message='Another session works on it\x1b[31m')
        self.assertEqual((ran.returncode, ran.stdout), (1, b''))
        self.assertIn(b'belljar: Another session works on it', ran.stderr)
        self.assertNotIn(b'\x1b', ran.stderr)
        self.assertNotIn(b'GDBus.Error', ran.stderr)

    def test_usage_errors(self):
        cases = [[], ['nonsense'], ['task'], ['task', ''], ['task', 'x', 'y'], ['task', '--time', 'soon', 'x'],
                 ['task', '--project', '../x', 'x'], ['task', '--network', 'lan', 'x'], ['task', '--bad', 'x'],
                 ['task', '--memory', '0', 'x'], ['image'], ['image', 'paint', 'x'], ['exec', 'abc'],
                 ['exec', 'abc', '--'], ['show'], ['sessions', 'x'], ['extend', 'abc', '-1'],
                 ['report', 'abc', '--key', 'x'], ['image', 'build', 'BAD NAME'], ['transcript', 'abc', '--raw', '--text'],
                 ['project', 'import', 'x', '/etc/passwd'], ['project', 'log', 'demo', '-n', '0'], ['complete', 'x']]
        for args in cases:
            with self.subTest(args=args):
                ran = self.belljar(*args)
                self.assertEqual((ran.returncode, ran.stdout), (2, b''), ran.stderr)
                self.assertIn(b'--help', ran.stderr)

    def test_help_teaches(self):
        verbs = self.belljar('complete', 'verbs').stdout.decode().splitlines()
        self.assertGreater(len(verbs), 20)
        overview = self.belljar('--help').stdout.decode()
        for verb in verbs:
            with self.subTest(verb=verb):
                self.assertIn(f'  {verb} ', overview)
                ran = self.belljar(*verb.split(), '--help')
                self.assertEqual(ran.stdout, self.belljar('help', *verb.split()).stdout)
                self.assertEqual(ran.returncode, 0)
                self.assertIn(f'belljar {verb}', ran.stdout.decode().split('xample', 1)[1])

    def test_sessions_by_prefix(self):
        self.assertEqual(self.belljar('show', 'abc').returncode, 0)
        ran = self.belljar('show', 'ab')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'Several sessions', ran.stderr)
        ran = self.belljar('show', 'zzz')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'no session', ran.stderr)

    def test_show_escapes(self):
        ran = self.belljar('show', 'abcdefgh')
        self.assertNotIn(b'\x1b', ran.stdout)
        self.assertNotIn(b'\nline two', ran.stdout)
        facts, fenced = ran.stdout.decode().split('--- untrusted plan, ', 1)
        self.assertNotIn('the model says', facts)
        self.assertIn('timing       queue 0.1 s, ready 0.7 s\n', facts)
        self.assertIn('chosen by    agent\n', facts)
        self.assertIn("(the model's own words; nothing in them was checked)\n| the model says\n| verdict: proved\n", fenced)
        self.assertTrue(fenced.splitlines()[-1].startswith('--- end of the untrusted summary, '))
        for line in fenced.splitlines()[1:]:
            self.assertRegex(line, r'^(\| |--- |\(the model|$)')
        shown = json.loads(self.belljar('show', 'abcdefgh', '--json').stdout)
        self.assertEqual(shown['details']['check'], 'make test')
        self.assertEqual(shown['plan'][0]['status'], 'done')

    def test_lists_as_json(self):
        for verb, key in (('sessions', 'session'), ('images', 'name'), ('projects', 'name'), ('jobs', 'job')):
            with self.subTest(verb=verb):
                found = json.loads(self.belljar(verb, '--json').stdout)
                self.assertIsInstance(found, list)
                self.assertTrue(all(key in entry for entry in found), found)
        ids = [entry['session'] for entry in json.loads(self.belljar('sessions', '--json').stdout)]
        self.assertIn('abcdefgh', ids)
        self.assertIn(b'abcdefgh\trunning\ttask\tdemo\t', self.belljar('sessions').stdout)
        self.assertIn(b'\t1.0 GiB\t', self.belljar('images').stdout)
        self.assertIn('abcdefgh', self.belljar('complete', 'sessions').stdout.decode().split())

    def test_log_keeps_a_row_on_one_line(self):
        ran = self.belljar('project', 'log', 'demo')
        self.assertEqual(len(ran.stdout.splitlines()), 2)
        self.assertEqual(json.loads(self.belljar('project', 'log', 'demo', '--json').stdout)[0]['verdict'], 'proved')

    def test_jobs_end_as_they_end(self):
        ran = self.belljar('image', 'build', 'debian')
        self.assertEqual((ran.returncode, ran.stdout), (0, b'All of it is done\n'))
        self.assertEqual(json.loads(self.belljar('image', 'build', 'debian', '--json').stdout),
                         {'message': 'All of it is done'})
        ran = self.belljar('image', 'verify', 'debian')
        self.assertEqual((ran.returncode, ran.stdout), (1, b''))
        self.assertIn(b'The digest differs', ran.stderr)

    def test_import_passes_an_open_folder(self):
        ran = self.belljar('project', 'import', 'fresh', self.folder)
        self.assertEqual((ran.returncode, ran.stdout), (0, f'Copied {self.folder} to []\n'.encode()), ran.stderr)
        path = os.path.join(self.folder, 'a file')
        with open(path, 'w', encoding='utf-8') as out:
            out.write('x')
        ran = self.belljar('project', 'copy-in', 'fresh', path)
        self.assertEqual(ran.stdout, f'Copied {path} to [a file]\n'.encode())
        ran = self.belljar('project', 'copy-in', 'fresh', path, 'b/c')
        self.assertEqual(ran.stdout, f'Copied {path} to [b/c]\n'.encode())

    def test_exec_passes_bytes_and_exit_code(self):
        payload = bytes(range(256)) * 4096
        ran = self.belljar('exec', 'abcd', '--', 'sh', '-c', 'cat; printf "\\377" >&2; exit 42', input=payload)
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (42, payload, b'\xff'))
        ran = self.belljar('exec', 'abcd', '--', 'printf', '%s', b'\xfe\x01--', '--help')
        self.assertEqual(ran.stdout, b'\xfe\x01----help')
        self.assertEqual(self.belljar('exec', 'abcd', '--', 'sh', '-c', 'kill -9 $$').returncode, 137)

    def test_exec_ends_at_ctrl_c(self):
        with subprocess.Popen([CLI, 'exec', 'abcd', '--', 'sh', '-c', 'echo on; exec sleep 5'], env=self.environ(),
                              stdout=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b'on\n')
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(DEADLINE), 130)

    def test_ctrl_c_stops_the_session_and_still_prints_the_report(self):
        with subprocess.Popen([CLI, 'task', json.dumps({'hold': True, 'id': 'stopmeaa'}), '--json'], env=self.environ(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stderr.readline(), b'Session stopmeaa\n')
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(json.loads(out)['outcome'], 'CANCELLED')
        self.assertIn(b'Stopping', err)

    def test_ctrl_c_cancels_a_build(self):
        with subprocess.Popen([CLI, 'image', 'build', 'hold'], env=self.environ(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            job = self.wait_for_job()
            self.assertEqual(job['operation'], 'image-build')
            process.send_signal(signal.SIGINT)
            _out, err = process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b'The job was cancelled', err)

    def test_a_killed_command_ends_its_job(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number), subprocess.Popen(
                    [CLI, 'image', 'build', 'hold'], env=self.environ(), stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE) as process:
                self.wait_for_job()
                process.send_signal(number)
                _out, err = process.communicate(timeout=DEADLINE)
                self.assertEqual(process.returncode, 1)
                self.assertIn(b'The job was cancelled', err)

    def test_job_cancel(self):
        with subprocess.Popen([CLI, 'image', 'build', 'hold'], env=self.environ(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            job = self.wait_for_job()
            self.assertEqual(self.belljar('job', 'cancel', str(job['job'])).returncode, 0)
            _out, err = process.communicate(timeout=DEADLINE)
        self.assertIn(b'The job was cancelled', err)
        ran = self.belljar('job', 'cancel', 'nix')
        self.assertEqual(ran.returncode, 1)
        self.assertIn('There is no job “nix”'.encode(), ran.stderr)

    def test_default_image_goes_only_by_force(self):
        ran = self.belljar('image', 'delete', 'debian')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'--force', ran.stderr)

    def test_sessions_tell_the_verdict(self):
        self.task(outcome='DONE', verdict='passes', id='verdicts')
        listed = self.belljar('sessions').stdout.decode().splitlines()
        row = next(line for line in listed if line.startswith('verdicts')).split('\t')
        self.assertEqual((row[1], row[-1]), ('finished', 'passes'))

    def wait_for_job(self):
        for _attempt in range(DEADLINE):
            running = [j for j in json.loads(self.belljar('jobs', '--json').stdout) if not j['done']]
            if running:
                return running[0]
        self.fail('no job came up')

    def test_stop_waits_for_the_end(self):
        self.task('--detach', hold=True, id='stopwait')
        ran = self.belljar('stop', 'stopwait')
        self.assertEqual(ran.returncode, 0)
        self.assertIn(b'CANCELLED', ran.stderr)
        self.assertEqual(self.belljar('report', 'stopwait').returncode, 1)

    def test_transcript(self):
        self.task(outcome='DONE', id='transcri')
        raw = self.belljar('transcript', 'transcri', '--follow').stdout
        with open(os.path.join(self.folder, 'transcri.jsonl'), 'rb') as file:
            self.assertEqual(raw, file.read())
        records = json.loads(self.belljar('transcript', 'transcri', '--json').stdout)
        self.assertEqual([record['type'] for record in records], ['session', 'end'])
        text = self.belljar('transcript', 'transcri', '--text').stdout
        self.assertEqual(len(text.splitlines()), 2)
        self.assertNotIn(b'\x1b', text)

    def test_screenshot(self):
        ran = self.belljar('screenshot', 'abcd')
        self.assertEqual(ran.stdout, b'\x89PNG\r\n\x1a\n\x00\xff')
        path = os.path.join(self.folder, 'screen.png')
        self.assertEqual(self.belljar('screenshot', 'abcd', '-o', path).returncode, 0)
        with open(path, 'rb') as file:
            self.assertEqual(file.read(), ran.stdout)

    def test_doctor(self):
        ran = self.belljar('doctor')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'fix: load kvm', ran.stdout)
        self.assertNotIn(b'\x1b', ran.stdout)
        self.assertFalse(json.loads(self.belljar('doctor', '--json').stdout)[1]['ok'])

    def complete(self, *words):
        script = f'PATH={BUILD}/cli:$PATH; . "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _belljar; ' \
                 'printf "%s\\n" "${COMPREPLY[@]}"'
        ran = subprocess.run(['bash', '-c', script, 'bash', COMPLETION, *words], env=self.environ(),
                             capture_output=True, text=True, timeout=DEADLINE, check=True)
        self.assertEqual(ran.stderr, '')
        return ran.stdout.split()

    def test_completion(self):
        self.assertIn('project', self.complete('belljar', 'pro'))
        self.assertNotIn('task', self.complete('belljar', 'pro'))
        self.assertEqual(self.complete('belljar', 'image', 'b'), ['build'])
        self.assertIn('copy-in', self.complete('belljar', 'project', ''))
        self.assertEqual(self.complete('belljar', 'show', 'abc'), ['abcdefgh'])
        self.assertEqual(self.complete('belljar', 'task', 'x', '--image', ''), ['debian'])
        self.assertEqual(self.complete('belljar', 'project', 'log', 'de'), ['demo'])
        self.assertEqual(self.complete('belljar', 'task', '--che'), ['--check'])
        self.assertEqual(self.complete('belljar', 'image', 'build', '--mir'), ['--mirror'])
        self.assertEqual(self.complete('belljar', 'exec', 'abcd', '--', 'l'), [])
        self.assertEqual(self.complete('belljar', 'task', 'x', '--project', '=', 'de'), ['demo'])
        self.assertEqual(self.complete('belljar', 'task', 'x', '--project', '='), ['demo'])
        self.task(outcome='DONE', id='overover')
        self.assertEqual(self.complete('belljar', 'show', 'overo'), ['overover'])
        self.assertNotIn('overover', self.complete('belljar', 'stop', 'overo'))

    def test_closed_standard_output_is_an_error(self):
        with open('/dev/full', 'wb') as full:
            ran = subprocess.run([CLI, 'sessions'], env=self.environ(), stdout=full, stderr=subprocess.PIPE,
                                 timeout=DEADLINE, check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'No space left', ran.stderr)

    def shown_on_terminal(self, **script):
        master, slave = pty.openpty()
        with subprocess.Popen([CLI, 'task', json.dumps({'verdict': 'proved', **script})], env=self.environ(TERM='x'),
                              stdout=subprocess.PIPE, stderr=slave) as process:
            os.close(slave)
            process.communicate(timeout=DEADLINE)
        shown = b''
        while select.select([master], [], [], 0)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
        os.close(master)
        return shown

    def test_a_place_in_line_is_redrawn(self):
        shown = self.shown_on_terminal(places=[3, 2, 1])
        for place in (b'place 3', b'place 2', b'place 1'):
            self.assertIn(place, shown)

    def test_a_terminal_gets_one_line_that_is_redrawn(self):
        shown = self.shown_on_terminal(late=1500)
        self.assertIn(b'\r\x1b[Kthe sub-agent works', shown)
        self.assertNotIn(b'\x07', shown)
        self.assertTrue(shown.endswith(b'\r\x1b[K'), shown)


class NoDaemonTest(unittest.TestCase):
    def run_at(self, address):
        return subprocess.run([CLI, 'sessions'], env={**os.environ, 'BELLJAR_BUS': address}, capture_output=True,
                              timeout=DEADLINE, check=False)

    def test_no_bus(self):
        ran = self.run_at('unix:path=/nonexistent/bus')
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'/nonexistent/bus', ran.stderr)
        self.assertIn(b'BELLJAR_BUS', ran.stderr, 'the fix')

    def test_no_daemon_on_the_bus(self):
        with tempfile.TemporaryDirectory(prefix='bj-cli-') as folder:
            bus = subprocess.Popen(['dbus-daemon', '--session', '--nofork', '--print-address',
                                    f'--address=unix:path={folder}/bus'], stdout=subprocess.PIPE, text=True)
            self.addCleanup(bus.stdout.close)
            self.addCleanup(bus.wait, DEADLINE)
            self.addCleanup(bus.terminate)
            ran = self.run_at(bus.stdout.readline().strip())
        self.assertEqual(ran.returncode, 1)
        self.assertIn(b'belljard is not running', ran.stderr)


if __name__ == '__main__':
    unittest.main()
