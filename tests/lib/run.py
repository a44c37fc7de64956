# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds Belljar and runs its tests. The last line counts them: N passed, N failed, N skipped.

Usage: tests/run [--list] [NAME…]

NAME is a part (source, unit, fuzz, lint, evidence, vm, bench, asan, desktop, fuzzer), a test of meson, or an integration module (cli or
test_cli); without a name everything runs but desktop, which builds an image of its own, and fuzzer. As root, packages that are missing are
installed; else they are named.

BELLJAR_FUZZ_SECONDS says for how long each fuzz target tries changed copies of its corpus with sanitizers, in part asan (4 when it is not
set). The part fuzzer does that with libFuzzer for as long; it needs clang.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import packages
import reaper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD, BUILD_ASAN, BUILD_FUZZ = (os.path.join(ROOT, name) for name in ('build', 'build-asan', 'build-fuzz'))
FUZZ = os.path.join(ROOT, 'tests', 'fuzz')
INTEGRATION = os.path.join(ROOT, 'tests', 'integration')
PYTHON = '/usr/bin/python3'  # the one that has gi
MESON_SUITES = ('unit', 'fuzz', 'lint')
WITHOUT_MACHINES = ('test_cli', 'test_gateway', 'test_agent')  # these also run with sanitizers
FORGERIES_WITHOUT_MACHINES = ('words', 'verdicts', 'transcripts', 'trees', 'models')  # and these
BY_NAME = ('desktop', 'fuzzer')  # run only when they are named
BUILD_S, MESON_S, MODULE_S, IMAGE_S = 1800, 1800, 2400, 2400

SANITIZERS = {'ASAN_OPTIONS': 'abort_on_error=1:detect_stack_use_after_return=1:detect_leaks=0',
              'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1'}


class Totals:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], []

    def add(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped

    def show(self):
        for name, reason in self.skipped:
            print(f'skipped: {name}: {reason}')
        for name in self.failed:
            print(f'FAILED: {name}')
        print(f'{self.passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped', flush=True)


def say(text):
    print(f'== {text}', flush=True)


def run(argv, seconds, **options):
    """Runs a program in a session of its own and ends all of it. Returns its exit code, or None when its time was over."""
    started = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, start_new_session=True, **options) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f'{argv[0]} did not end in {time.monotonic() - started:.0f} s', flush=True)
            return None
        finally:
            end_group(process)


def end_group(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            break
        os.killpg(process.pid, number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            continue
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def our_children():
    with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as file:
        return [int(pid) for pid in file.read().split()]


def describe(pid):
    try:
        with open(f'/proc/{pid}/cmdline', 'rb') as file:
            return file.read().replace(b'\0', b' ').decode('utf-8', 'replace').strip()[:200]
    except OSError:
        return ''


def end_strays():
    """Processes that a test left are ours now (subreaper): they are ended, and each is a failure."""
    names = []
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] != 0:
                continue
        except ChildProcessError:
            break
        for pid in our_children():
            name = describe(pid)
            if name and name not in names:
                names.append(name)
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return names


def install_packages():
    try:
        packages.install(say)
    except packages.Missing as error:
        print(error)
        return False
    return True


def fuzz_seconds():
    return int(os.environ.get('BELLJAR_FUZZ_SECONDS') or 4)


def build(folder, *options, targets=(), **environ):
    say(f'building {os.path.relpath(folder, ROOT)}')
    again = ['--reconfigure'] if os.path.exists(os.path.join(folder, 'build.ninja')) else []
    with open(os.path.join(tempfile.gettempdir(), f'bj-build-{os.getpid()}.log'), 'w+', encoding='utf-8') as log:
        os.unlink(log.name)
        good = (run(['meson', 'setup', *again, folder, *options], BUILD_S, cwd=ROOT, stdout=log, stderr=log, env={**os.environ,
                                                                                                                  **environ}) == 0
                and run(['ninja', '-C', folder, *targets], BUILD_S, cwd=ROOT, stdout=log, stderr=log) == 0)
        if not good:
            log.seek(0)
            print(log.read()[-6000:])
    return good


def read_junit(path, label):
    """Counts what meson wrote about a run: a TAP program's points are cases of their own."""
    passed, failed, skipped = 0, [], []
    for suite in xml.parse(path).getroot().iter('testsuite'):
        for case in suite.iter('testcase'):
            name = f'{label}{suite.get("name")}: {case.get("name")}'
            if case.find('failure') is not None or case.find('error') is not None:
                failed.append(name)
            elif case.find('skipped') is not None:
                skipped.append((name, case.find('skipped').get('message') or 'it says no reason'))
            else:
                passed += 1
    return passed, failed, skipped


def run_meson(folder, totals, selection, label='', **environ):
    """Runs tests of meson. @selection: arguments that choose them"""
    junit = os.path.join(folder, 'meson-logs', 'testlog.junit.xml')
    if os.path.exists(junit):
        os.unlink(junit)
    code = run(['meson', 'test', '-C', folder, '--no-rebuild', '--print-errorlogs', *selection], MESON_S, cwd=ROOT,
               env={**os.environ, **environ})
    if not os.path.exists(junit):
        totals.add(0, [f'{label}meson test {" ".join(selection)}: it left no result'] if code != 0 else [], [])
        return
    passed, failed, skipped = read_junit(junit, label)
    if code != 0 and not failed:
        failed.append(f'{label}meson test {" ".join(selection)} ended with {code}')
    totals.add(passed, failed, skipped)


def run_module(name, totals, folder=BUILD, label='', **environ):
    """Runs one module of unittest in a process of its own, with a deadline."""
    run_counted(name, [os.path.join(ROOT, 'tests', 'lib', 'run_module.py'), name], totals, folder, label, **environ)


def run_counted(name, argv, totals, folder=BUILD, label='', **environ):
    """Runs a program of ours that writes what became of its tests into a file, its last argument."""
    say(f'{label}{name}')
    with tempfile.NamedTemporaryFile(prefix='bj-result-', suffix='.json') as result:
        code = run([PYTHON, *argv, result.name], MODULE_S, cwd=INTEGRATION,
                   env={**os.environ, 'BELLJAR_BUILD': folder, **environ})
        text = result.read()
    if code is None or not text:
        totals.add(0, [f'{label}{name}: ' + ('its time was over' if code is None else f'it ended with {code}')], [])
        return
    found = json.loads(text)
    totals.add(found['passed'], [f'{label}{name}: {test}' for test in found['failed']],
               [(f'{label}{name}: {test}', reason) for test, reason in found['skipped']])


def run_evidence(totals, folder=BUILD, label='', chosen=(), **environ):
    """The forgeries; their last line says how many there were and how many succeeded."""
    run_counted('evidence', [os.path.join(ROOT, 'tests', 'evidence', 'main.py'), *chosen], totals, folder, label, **environ)


def run_vm(totals):
    """Machines under meson; they share the image that the integration modules use."""
    say('vm')
    with tempfile.TemporaryDirectory(prefix='bj-image-') as folder:
        os.chmod(folder, 0o711)  # machines' uids pass through
        code = 'import sys; sys.path.insert(0, sys.argv[1]); import belljar_test; belljar_test.vm_image_folder(sys.argv[2])'
        made = run([PYTHON, '-c', code, os.path.join(ROOT, 'tests', 'lib'), folder], IMAGE_S)
        if made != 0:
            totals.add(0, ['vm: the image could not be built'], [])
            return
        run_meson(BUILD, totals, ['--suite', 'integration'], BELLJAR_TEST_IMAGE=folder)


def run_asan(totals):
    if not build(BUILD_ASAN, '-Db_sanitize=address,undefined', '-Dnls=false'):
        totals.add(0, ['asan: it does not build'], [])
        return
    run_meson(BUILD_ASAN, totals, ['--suite', 'unit'], 'asan: ', **SANITIZERS)
    seconds = fuzz_seconds()
    run_meson(BUILD_ASAN, totals, ['--suite', 'fuzz', '-t', str(2 + seconds // 60)], 'asan: ',
              **SANITIZERS, BELLJAR_FUZZ_SECONDS=str(seconds))
    for name in WITHOUT_MACHINES:
        if name in modules():
            run_module(name, totals, BUILD_ASAN, 'asan: ', **SANITIZERS)
    run_evidence(totals, BUILD_ASAN, 'asan: ', FORGERIES_WITHOUT_MACHINES, **SANITIZERS)


def run_fuzzer(totals):
    """libFuzzer over each corpus. What it adds to one stays in the build folder."""
    if shutil.which('clang') is None:
        totals.add(0, [], [('fuzzer', 'clang is not installed')])
        return
    names = sorted(name for name in os.listdir(os.path.join(FUZZ, 'corpus')))
    if not build(BUILD_FUZZ, '-Dfuzz=true', '-Dnls=false', '-Db_sanitize=address,undefined', '-Db_lundef=false',
                 targets=[f'tests/fuzz/fuzz-{name}' for name in names], CC='clang'):
        totals.add(0, ['fuzzer: it does not build'], [])
        return
    for name in names:
        say(f'fuzz-{name}')
        found = os.path.join(BUILD_FUZZ, 'found', name)
        os.makedirs(found, exist_ok=True)
        code = run([os.path.join(BUILD_FUZZ, 'tests', 'fuzz', f'fuzz-{name}'), f'-max_total_time={fuzz_seconds()}', '-timeout=30',
                    '-print_final_stats=0', '-verbosity=0', f'-artifact_prefix={found}/../crash-{name}-', found,
                    os.path.join(FUZZ, 'corpus', name)], fuzz_seconds() + 300, env={**os.environ, 'G_DEBUG': 'fatal-criticals'})
        totals.add(code == 0, [] if code == 0 else [f'fuzz-{name} ended with {code}; its input is in {found}/..'], [])


def run_source(totals):
    say('check-source')
    checker = os.path.join(ROOT, 'tests', 'check-source')
    for name, argv in (('its own test', [checker, '--self-test']), ('the tree', [checker])):
        with tempfile.TemporaryFile('w+') as out:
            code = run(argv, BUILD_S, stdout=out)
            out.seek(0)
            if code != 0:
                print(out.read())
        totals.add(code == 0, [] if code == 0 else [f'check-source: {name}'], [])


def run_bench(totals):
    """Whether every figure can be measured; what it is on a host that runs tests says little."""
    say('bench --short')
    code = run([PYTHON, os.path.join(ROOT, 'tests', 'bench', 'bench'), '--short'], MODULE_S,
               env={**os.environ, 'BELLJAR_BUILD': BUILD})
    totals.add(code == 0, [] if code == 0 else [f'bench --short ended with {code}'], [])


def modules():
    return sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(INTEGRATION, 'test_*.py')))


def parts():
    """Every part by name: a function that runs it."""
    table = {'source': run_source}
    for suite in MESON_SUITES:
        table[suite] = lambda totals, suite=suite: run_meson(BUILD, totals, ['--suite', suite])
    for name in modules():
        table[name] = lambda totals, name=name: run_module(name, totals)
    table['evidence'] = run_evidence
    table['vm'] = run_vm
    table['bench'] = run_bench
    table['asan'] = run_asan
    table['desktop'] = lambda totals: run_module('desktop', totals)
    table['fuzzer'] = run_fuzzer
    return table


def choose(names):
    table = parts()
    if not names:
        return [part for name, part in table.items() if name not in BY_NAME]
    chosen = []
    for name in names:
        found = table.get(name) or table.get(f'test_{name}')
        chosen.append(found or (lambda totals, name=name: run_meson(BUILD, totals, [name])))
    return chosen


def main(names):
    if names in (['--help'], ['-h']):
        print(__doc__)
        return 0
    if names == ['--list']:
        print('\n'.join(parts()))
        return 0
    reaper.start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    totals = Totals()
    try:
        if not install_packages():
            totals.add(0, ['packages are missing'], [])
        elif not build(BUILD):
            totals.add(0, ['it does not build'], [])
        else:
            for part in choose(names):
                began = time.monotonic()
                part(totals)
                totals.add(0, [f'a process was left behind: {name}' for name in end_strays()], [])
                say(f'took {time.monotonic() - began:.0f} s')
    finally:
        end_strays()
        totals.show()
    return 1 if totals.failed or not totals.passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
