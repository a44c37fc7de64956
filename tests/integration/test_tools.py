# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent's tools in a real machine: keys and pointer through QEMU, services, downloads, packages, and the project's history."""
import json
import os
import re
import unittest

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

PRINTABLE = ''.join(map(chr, range(ord(' '), ord('~') + 1)))

UNIT = '''cat >/etc/systemd/system/demo.service <<'E'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/echo demo says hello
E
systemctl daemon-reload'''

# A package, and a source of packages that needs no network.
REPOSITORY = '''set -e
mkdir -p /opt/repo/build/DEBIAN /opt/repo/build/usr/bin
cd /opt/repo
printf 'Package: bj-demo\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: x <x@localhost>\\nDescription: demo\\n' >build/DEBIAN/control
printf '#!/bin/sh\\necho demo runs\\n' >build/usr/bin/bj-demo
chmod 755 build/usr/bin/bj-demo
dpkg-deb --build build bj-demo.deb
{ cat build/DEBIAN/control; echo "Filename: ./bj-demo.deb"; echo "Size: $(stat -c %s bj-demo.deb)"
  echo "SHA256: $(sha256sum bj-demo.deb | cut -d' ' -f1)"; } >Packages
rm /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] file:/opt/repo ./' >/etc/apt/sources.list.d/demo.list'''

SERVER = '''mkdir -p /srv/web && cd /srv/web && head -c 70000 /dev/urandom >file
exec python3 -m http.server 8000 --bind 127.0.0.1'''

# Writes what the tablet says, as the kernel hands it on.
WATCH = '''import glob, struct, sys
for path in glob.glob('/sys/class/input/event*/device/name'):
    with open(path, encoding='ascii') as name:
        if 'Tablet' in name.read():
            event = path.split('/')[4]
with open('/dev/input/' + event, 'rb', buffering=0) as device:
    print('ready', flush=True)
    while True:
        _sec, _usec, kind, code, value = struct.unpack('llHHi', device.read(24))
        if kind:
            print(kind, code, value, flush=True)
'''


class ToolCase(SessionCase):
    def results(self, scenario):
        """(tool, result) in order, as the model got them."""
        chats = [entry for entry in self.model.requests() if entry.get('scenario') == scenario]
        found = []
        for chat in chats[1:]:
            roles = [message['role'] for message in chat['messages']]
            last = len(roles) - roles[::-1].index('assistant')
            found += [(message['tool_name'], json.loads(message['text'])) for message in chat['messages'][last:]
                      if message['role'] == 'tool']
        return found

    def run_scenario(self, name, *options):
        """Returns (report, results)."""
        _code, report = self.task(name, *options)
        self.assertEqual(report['outcome'], 'DONE', (report, self.daemon.log()))
        return report, self.results(name)


class Console(ToolCase):
    scenarios = {
        'keys': [
            turn(call('type_text', text='cat >/root/typed\n'), call('type_text', text=PRINTABLE + '\n\tend\n'),
                 call('press_keys', keys='ctrl+d'), call('type_text', text='sleep 1000\n'), call('wait', seconds=1),
                 call('press_keys', keys='ctrl+c'), call('type_text', text='echo $? >/root/code; echo wrong'),
                 call('press_keys', keys='BackSpace BackSpace BackSpace BackSpace BackSpace d o n e Return'),
                 call('run', command='until [ -s /root/code ]; do sleep 0.1; done; cat /root/typed /root/code', timeout_s=60)),
            turn(call('type_text', text='grün'), call('press_keys', keys='ctrl+Fly'), call('mouse_click', x=1, y=1),
                 call('read_clipboard'), call('write_clipboard', text='x'), call('kill', id=99)), finish()],
        'system': [
            turn(call('run', command=UNIT), call('service', name='demo', action='start'), call('service', name='demo', action='status'),
                 call('read_log', unit='demo', lines=5), call('service', name='demo', action='stop'),
                 call('service', name='demo', action='status'), call('read_log', lines=3), call('list_processes')),
            turn(call('start', command=SERVER),
                 call('run', command='until curl -s 127.0.0.1:8000 >/dev/null; do sleep 0.1; done', timeout_s=60),
                 call('download', url='http://127.0.0.1:8000/file', path='got/file'),
                 call('run', command='cmp /srv/web/file got/file && echo same'),
                 call('download', url='http://deb.debian.org/', path='x')),
            turn(call('install_packages', names=['bj-demo']), call('run', command=REPOSITORY),
                 call('install_packages', names=['bj-demo']), call('run', command='bj-demo')), finish()],
        'history': [
            turn(call('git_status'), call('write_file', path='a.txt', content='one\n2\n'),
                 call('write_file', path='new/b.txt', content='b\n'),
                 call('run', command='rm gone.txt; git init -q . && git config core.fsmonitor /bin/false; chown check a.txt; mkfifo pipe'),
                 call('git_status'), call('git_diff', path='a.txt'), call('git_diff'), call('git_log'),
                 call('git_diff', path='../..'), call('run', command='ls -d .git && stat -c %U a.txt')), finish()],
    }

    def test_keys(self):
        """Every character of the keyboard arrives on the console that the image shows, and so do control keys."""
        report, results = self.run_scenario('keys')
        for tool, result in results[:8]:
            self.assertEqual(result, {'ok': True}, tool)
        self.assertEqual(results[8][1]['exit'], 0, results[8])
        self.assertTrue(results[8][1]['stdout'].startswith(f'{PRINTABLE}\n\tend\n130\n'), results[8])
        errors = [result['error'] for _tool, result in results[9:]]
        for text, expected in zip(errors, ('“ü” (U+00FC)', '“Fly” is no key', 'no desktop', 'no clipboard', 'no clipboard', '99')):
            self.assertIn(expected, text)
        self.assertEqual(len(errors), 6)
        session = report['session']
        records = [json.loads(line) for line in self.daemon.cli('transcript', '--raw', session).stdout.splitlines()]
        inputs = [record['data'] for record in records if record['type'] == 'input']
        self.assertTrue(all(record['by'] == 'seen' for record in records if record['type'] == 'input'))
        self.assertEqual([entry['tool'] for entry in inputs], ['type_text', 'type_text', 'press_keys', 'type_text', 'wait', 'press_keys',
                                                               'type_text', 'press_keys', 'mouse_click'])
        self.assertIn('no desktop', inputs[-1]['failure'])
        self.assertEqual(self.daemon.cli('report', session, '--verify').returncode, 0)

    def test_system(self):
        report, results = self.run_scenario('system', '--network', 'none')
        unit = [result for tool, result in results if tool == 'service']
        self.assertEqual([result['exit'] for result in unit], [0, 0, 0, 3])
        self.assertIn('active (exited)', unit[1]['stdout'])
        logs = [result['stdout'] for tool, result in results if tool == 'read_log']
        self.assertIn('demo says hello', logs[0])
        self.assertEqual(len(logs[1].splitlines()), 3)
        processes = dict(results)['list_processes']['stdout']
        self.assertRegex(processes, r'(?m)^ *1 +0 root .*(systemd|init)')
        self.assertIn('qemu-ga', processes)
        downloads = [result for tool, result in results if tool == 'download']
        self.assertEqual(downloads[0]['exit'], 0, downloads)
        self.assertRegex(downloads[0]['stdout'], '^70000 bytes, sha256 [0-9a-f]{64}\n$')
        self.assertIn('network none', downloads[1]['error'])
        installs = [result for tool, result in results if tool == 'install_packages']
        self.assertIn('network none', installs[0]['error'])
        self.assertEqual(installs[1]['exit'], 0, installs[1])
        runs = [result for tool, result in results if tool == 'run']
        self.assertEqual([run['exit'] for run in runs], [0] * len(runs), runs)
        self.assertEqual((runs[2]['stdout'], runs[-1]['stdout']), ('same\n', 'demo runs\n'))
        tools = [command['tool'] for command in report['commands']]
        self.assertEqual((tools.count('download'), tools.count('install_packages'), tools.count('service')), (2, 2, 4))
        download = next(command for command in report['commands'] if command['tool'] == 'download')
        self.assertTrue(download['command'].startswith('/bin/sh -s -- http://127.0.0.1:8000/file /work/'), download)

    def test_history(self):
        """True answers while the guest works, and nothing in its folder moves or changes hands for them."""
        self.import_project('history', {'a.txt': 'one\ntwo\n', 'gone.txt': 'x\n'})
        report, results = self.run_scenario('history', '--project', 'history')
        self.assertEqual(results[0][1]['total'], 0)
        self.assertIn('Nothing differs', results[0][1]['message'])
        status = results[4][1]
        self.assertEqual(sorted((change['path'], change['status']) for change in status['changes']),
                         [('a.txt', 'modified'), ('gone.txt', 'deleted'), ('new/b.txt', 'added')])
        self.assertEqual(next(change for change in status['changes'] if change['path'] == 'a.txt'),
                         {'path': 'a.txt', 'status': 'modified', 'added': 1, 'removed': 1})
        self.assertTrue(any('pipe' in warning for warning in status['warnings']), status)
        self.assertIn('\n one\n-two\n+2\n', results[5][1]['diff'])
        self.assertNotIn('b.txt', results[5][1]['diff'])
        self.assertIn('+++ b/new/b.txt\n', results[6][1]['diff'])
        commits = results[7][1]['commits']
        self.assertEqual([(commit['commit'], commit['subject']) for commit in commits],
                         [(report['baseline'], 'State before a session')])
        self.assertIn('outside', results[8][1]['error'])
        self.assertEqual(results[9][1]['stdout'], '.git\ncheck\n')
        self.assertEqual({change['path'] for change in report['files_changed']}, {'a.txt', 'gone.txt', 'new/b.txt'})
        repo = os.path.join(self.daemon.state_dir, 'projects', 'history', 'repo.git')
        self.assertFalse([name for name in os.listdir(repo) if name.startswith('quarantine')])


class DesktopDaemon(bt.Daemon):
    """Its image says that it has a desktop. There is none in it, but its machines get the tablet of one."""

    def link_image(self):
        super().link_image()
        path = os.path.join(self.state_dir, 'images', 'debian', '1', 'image.ini')
        with open(path, encoding='utf-8') as file:
            text = file.read()
        os.unlink(path)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(re.sub('^desktop=false$', 'desktop=true', text, flags=re.MULTILINE))


class Pointer(ToolCase):
    daemon_class = DesktopDaemon
    config = '[pool]\ntemplates=false\n'
    scenarios = {'pointer': [
        turn(call('run', command='modprobe virtio_input && modprobe evdev'),
             call('write_file', path='/root/watch.py', content=WATCH), call('start', command='exec python3 /root/watch.py >/root/events'),
             call('run', command='until grep -q ready /root/events; do sleep 0.1; done', timeout_s=60),
             call('mouse_move', x=60000, y=1), call('mouse_move', x=0, y=0), call('mouse_click', x=100, y=50, double=True),
             call('mouse_drag', x1=10, y1=20, x2=90, y2=100, button='right'), call('scroll', x=10, y=20, amount=3),
             call('scroll', x=10, y=20, amount=-1), call('scroll', x=10, y=20, amount=0),
             call('run', command='until [ "$(grep -c "^2 8" /root/events)" = 4 ]; do sleep 0.1; done; cat /root/events', timeout_s=60)),
        finish()]}

    def test_pointer(self):
        """What the guest's kernel gets from the tablet is what the model asked for."""
        _report, results = self.run_scenario('pointer')
        self.assertEqual([result.get('exit', 0) for _tool, result in results], [0] * len(results), results)
        match = re.search(r'(\d+) pixels wide and (\d+) high', results[4][1]['error'])
        width, height = int(match.group(1)), int(match.group(2))
        self.assertIn('1 to 50', results[10][1]['error'])
        lines = [tuple(map(int, line.split())) for line in results[11][1]['stdout'].splitlines() if line != 'ready']
        events = [line for line in lines if line[0] != 4]
        buttons = [(code, value) for kind, code, value in events if kind == 1]
        left, right = 0x110, 0x111
        self.assertEqual([event for event in buttons if event[0] in (left, right)],
                         [(left, 1), (left, 0), (left, 1), (left, 0), (right, 1), (right, 0)])
        self.assertEqual([value for kind, code, value in events if (kind, code) == (2, 8)], [-1, -1, -1, 1])

        def place(x, y):
            return (3, 0, x * 0x7fff // (width - 1)), (3, 1, y * 0x7fff // (height - 1))
        first = events.index((1, left, 1))
        self.assertEqual(tuple(events[first - 2:first]), place(100, 50))
        begin, end = events.index((1, right, 1)), events.index((1, right, 0))
        self.assertEqual(tuple(events[begin - 2:begin]), place(10, 20))
        self.assertEqual(tuple(events[end - 2:end]), place(90, 100))
        self.assertGreater(end - begin, 10, 'it moves there in steps')


if __name__ == '__main__':
    unittest.main(verbosity=2)
