# SPDX-License-Identifier: GPL-3.0-or-later
"""From a checkout to a report: builds Belljar, builds a small Debian image, and lets a model fix a bug in a real machine.

Usage: ./quickstart [--model URL NAME] [--state-dir DIR] [--keep]

Without --model the model is a replay: a scripted server that speaks Ollama's protocol. All else is real.
"""
import argparse
import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import packages

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build')
CLI = os.path.join(BUILD, 'cli', 'belljar')
DAEMON = os.path.join(BUILD, 'daemon', 'belljard')
REPLAY = os.path.join(ROOT, 'tests', 'replay', 'belljar-replay')
SCENARIO = os.path.join(ROOT, 'tests', 'replay', 'scenarios', 'fix-bug.json')
PROJECT = os.path.join(ROOT, 'tests', 'replay', 'projects', 'fix-bug')
TASK = 'The word count splits “don\'t” into two words. Find out why, fix it, and make the tests pass.'
CHECK = 'python3 -m unittest -q test_wordcount'
BUILD_S, START_S, STOP_S, IMAGE_S, TASK_S = 1800, 120, 200, 1800, 3600
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class Failure(Exception):
    """It cannot go on; the text says why and what to do."""


def say(text):
    print(f'\n== {text}', flush=True)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def run(argv, seconds, **options):
    """Runs a program to its end. Returns its exit code."""
    try:
        return subprocess.run(argv, timeout=seconds, check=False, **options).returncode
    except subprocess.TimeoutExpired as error:
        raise Failure(f'{argv[0]} did not end in {seconds} s') from error
    except FileNotFoundError as error:
        raise Failure(f'{argv[0]} is missing; tests/packages lists what is needed') from error


def run_quietly(argv, seconds):
    with tempfile.TemporaryFile('w+') as log:
        if run(argv, seconds, cwd=ROOT, stdout=log, stderr=log) != 0:
            log.seek(0)
            raise Failure(f'{" ".join(argv)} failed:\n{log.read()[-4000:]}')


def install_packages():
    try:
        packages.install(say)
    except packages.Missing as error:
        raise Failure(str(error)) from error


def build():
    say(f'Building in {BUILD}')
    if not os.path.exists(os.path.join(BUILD, 'build.ninja')):
        run_quietly(['meson', 'setup', BUILD], BUILD_S)
    run_quietly(['ninja', '-C', BUILD], BUILD_S)


def start(stack, argv, what, **options):
    """Starts a program that ends when we do."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, start_new_session=True, **options)
    stack.callback(end, process, what)
    return process


def end(process, what):
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        print(f'{what} did not end; it is killed')
        process.kill()
        process.wait(30)


def read_line(process, what):
    if not select.select([process.stdout], [], [], START_S)[0]:
        raise Failure(f'{what} did not start in {START_S} s')
    line = process.stdout.readline().strip()
    if not line:
        raise Failure(f'{what} did not start')
    return line


def start_model(stack, options):
    """Returns the model's address and name."""
    if options.model:
        return options.model
    say('The model is a REPLAY: a script that says what a model would, over Ollama\'s real protocol.\n'
        '   The machine, the agent, the checks and the report are real.\n'
        '   A real model: ./quickstart --model http://127.0.0.1:11434 NAME')
    replay = start(stack, [sys.executable, REPLAY, '--scenario', SCENARIO], 'the replay', stdout=subprocess.PIPE, text=True)
    return read_line(replay, 'The replay'), 'replay'


class Belljar:
    """The daemon of this run and the command that talks to it."""

    def __init__(self, stack, state_dir, url, model):
        self.folder = tempfile.mkdtemp(prefix='bj-quick-')
        stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        bus = start(stack, ['dbus-daemon', '--session', '--nofork', '--print-address',
                            f'--address=unix:path={self.folder}/bus'], 'the bus', stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True)
        self.address = read_line(bus, 'The bus')
        self.environ = {**os.environ, 'BELLJAR_BUS': self.address}
        config = os.path.join(self.folder, 'belljar.conf')
        with open(config, 'w', encoding='utf-8') as out:
            out.write(f'[model]\nurl={url}\nname={model}\n')
        os.makedirs(state_dir, mode=0o711, exist_ok=True)
        self.log = os.path.join(state_dir, 'belljard.log')
        with open(self.log, 'w', encoding='utf-8') as log:
            self.daemon = start(stack, [DAEMON, f'--bus={self.address}', '--auth=owner', f'--state-dir={state_dir}',
                                        f'--config={config}'], 'belljard', stdout=log, stderr=log)
        self.wait()

    def wait(self):
        deadline = time.monotonic() + START_S
        while run([CLI, 'sessions'], 60, env=self.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) != 0:
            if self.daemon.poll() is not None or time.monotonic() > deadline:
                with open(self.log, encoding='utf-8', errors='replace') as log:
                    raise Failure(f'belljard does not serve; its log:\n{log.read()[-4000:]}')
            time.sleep(0.2)

    def __call__(self, *args, seconds=120):
        return run([CLI, *args], seconds, env=self.environ)

    def list(self, what):
        return subprocess.run([CLI, 'complete', what], env=self.environ, capture_output=True, text=True, timeout=60,
                              check=True).stdout.split()


def prepare(belljar):
    """The image, if there is none, and a fresh project with the bug in it. Returns the project's name."""
    if 'debian' not in belljar.list('images'):
        say('Building the Debian image; once, a few minutes')
        if belljar('image', 'build', 'debian', seconds=IMAGE_S) != 0:
            raise Failure(f'The image could not be built. belljard\'s log: {belljar.log}')
    name = 'quickstart'
    if name in belljar.list('projects') and belljar('project', 'delete', name) != 0:
        raise Failure('The project of an earlier run could not be deleted')
    say(f'Importing {os.path.relpath(PROJECT, ROOT)} as the project “{name}”')
    if belljar('project', 'import', name, PROJECT) != 0:
        raise Failure('The project could not be imported')
    return name


def keep(belljar, options):
    print(f'\nbelljard goes on until Ctrl-C. In another terminal:\n\n  export BELLJAR_BUS={belljar.address}\n'
          f'  export PATH={os.path.dirname(CLI)}:$PATH\n  belljar --help\n', flush=True)
    if not options.model:
        print('The model is still the replay: it knows only the one task.\n')
    with contextlib.suppress(KeyboardInterrupt):
        belljar.daemon.wait()


def show_next(options, state_dir):
    print('\nWhat to try next:')
    if not options.keep:
        print('  ./quickstart --keep                                      look around: sessions, transcript, exec')
    if not options.model:
        print('  ./quickstart --model http://127.0.0.1:11434 qwen3:8b     the same with a real model')
    print('  build/cli/belljar --help                                 all the command can do\n'
          f'Kept: {BUILD} and {state_dir} (image, project, reports; delete it when you are done).', flush=True)


def main():
    parser = argparse.ArgumentParser(prog='quickstart', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', nargs=2, metavar=('URL', 'NAME'), help='a real server that speaks Ollama\'s protocol')
    parser.add_argument('--state-dir', default=f'/var/tmp/belljar-quickstart-{os.getuid()}',
                        help='default: %(default)s; short, because sockets lie in it')
    parser.add_argument('--keep', action='store_true', help='keep the daemon running until Ctrl-C')
    options = parser.parse_args()
    state_dir = os.path.abspath(options.state_dir)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        install_packages()
        build()
        url, model = start_model(stack, options)
        say(f'Starting belljard on a bus of its own; its state is in {state_dir}')
        belljar = Belljar(stack, state_dir, url, model)
        name = prepare(belljar)
        say(f'belljar task "{TASK}" --project {name} --check "{CHECK}"')
        code = belljar('task', TASK, '--project', name, '--check', CHECK, '--network', 'none', seconds=TASK_S)
        print(f'\nThe command\'s exit code is {code}; all took {time.monotonic() - started:.0f} s.', flush=True)
        show_next(options, state_dir)
        if options.keep:
            keep(belljar, options)
    return code


if __name__ == '__main__':
    try:
        sys.exit(main())
    except Failure as error:
        print(f'\nquickstart: {error}', file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print('\nquickstart: ended', file=sys.stderr)
        sys.exit(130)
