# SPDX-License-Identifier: GPL-3.0-or-later
"""Task lists of projects, room on the disk, and what is left of a session when it is over: transcript, page, bundle."""
import base64
import hashlib
import html.parser
import io
import json
import os
import re
import sqlite3
import tarfile
import time
import unittest

from gi.repository import GLib

import belljar_test as bt
from sessions import SessionCase, call, finish, turn

SECRET = 'hunter2-the-push-token-of-belljar'
GITHUB = 'ghp_' + 'Ab3' * 12
OWN = 'value-of-a-variable-of-the-caller'
HOSTILE = '</pre><script>alert(1)</script><img src="http://example.invalid/x.png" onerror=alert(2)>&amp;\u202e'


class Daemon(bt.Daemon):
    """With a push token that nobody may see."""

    def write_config(self):
        token = os.path.join(self.folder, 'token')
        with open(token, 'w', encoding='ascii', opener=lambda path, flags: os.open(path, flags, 0o600)) as out:
            out.write(SECRET + '\n')
        given, self.config = self.config, f'{self.config}[publish]\nremote=https://example.org/x.git\ntoken-file={token}\n'
        super().write_config()
        self.config = given


class TaskList(unittest.TestCase):
    """A daemon without an image: nothing here needs a machine."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(bt.Daemon(image=None))

    def setUp(self):
        self.good('project', 'create', 'demo')
        self.addCleanup(self.daemon.cli, 'project', 'delete', 'demo')

    def good(self, *args):
        ran = self.daemon.cli(*args)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout

    def bad(self, code, *args):
        ran = self.daemon.cli(*args)
        self.assertEqual((ran.returncode, ran.stdout), (code, ''), ran.stderr)
        return ran.stderr

    def add(self, text):
        return int(self.good('project', 'tasks', 'demo', '--add', text))

    def listed(self, project='demo'):
        return json.loads(self.good('project', 'tasks', project, '--json'))

    def rows(self):
        return [(task['id'], task['status'], task['text']) for task in self.listed()]

    def test_add_change_move_and_restart(self):
        self.assertEqual(self.listed(), [])
        self.assertEqual([self.add(text) for text in ('one', 'two', 'three')], [1, 2, 3])
        self.good('project', 'tasks', 'demo', '--set', '2', '--status', 'doing')
        self.good('project', 'tasks', 'demo', '--set', '3', '--position', '1', '--text', 'third')
        expected = [(3, 'todo', 'third'), (1, 'todo', 'one'), (2, 'doing', 'two')]
        self.assertEqual(self.rows(), expected)
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual(self.rows(), expected)  # also doing: a person said so, no session
        for place, order in ((2, [1, 3, 2]), (3, [1, 2, 3]), (99, [1, 2, 3]), (1, [3, 1, 2])):
            self.good('project', 'tasks', 'demo', '--set', '3', '--position', str(place))
            self.assertEqual([task['id'] for task in self.listed()], order)
        self.assertEqual(self.add('four'), 4)
        self.assertEqual([task['id'] for task in self.listed()], [3, 1, 2, 4])
        self.assertEqual(self.listed()[0].keys(), {'id', 'text', 'status', 'created', 'changed', 'outcome', 'verdict', 'sessions'})

    def test_one_projects_list_is_not_anothers(self):
        self.add('mine')
        self.good('project', 'create', 'other')
        self.assertEqual(self.listed('other'), [])
        self.good('project', 'delete', 'other')
        self.good('project', 'delete', 'demo')
        self.good('project', 'create', 'demo')
        self.assertEqual(self.listed(), [])

    def test_refusals(self):
        number = self.add('x')
        for args in (('--set', '1'), ('--status', 'done'), ('--add', 'y', '--set', '1', '--status', 'done'), ('--add', ''),
                     ('--set', 'one', '--status', 'done'), ('--set', '1', '--position', '0')):
            self.bad(2, 'project', 'tasks', 'demo', *args)
        self.assertIn('no item 77', self.bad(1, 'project', 'tasks', 'demo', '--set', '77', '--status', 'done'))
        self.assertIn('todo, doing, done or dropped',
                      self.bad(1, 'project', 'tasks', 'demo', '--set', str(number), '--status', 'nearly'))
        self.assertIn('4096 bytes', self.bad(1, 'project', 'tasks', 'demo', '--add', 'x' * 4097))
        self.assertIn('“due” is not known', self.call_error('SetTask', '(ua{sv})', (1, {'due': GLib.Variant('u', 1)})))
        self.assertIn('must be of type s', self.call_error('SetTask', '(ua{sv})', (1, {'status': GLib.Variant('u', 1)})))
        self.assertEqual(self.rows(), [(number, 'todo', 'x')])

    def test_an_item_needs_its_project(self):
        task = ('RunTask', '(sa{sv})', 'org.belljar1.Manager', '/org/belljar1')
        self.assertIn('“item”', self.call_error(task[0], task[1], ('x', {'item': GLib.Variant('u', 0)}), *task[2:]))
        self.assertIn('--item needs', self.bad(2, 'task', 'x', '--item', '1'))
        self.assertIn('--item needs', self.bad(2, 'task', '--item', 'x', '--project', 'demo'))

    def call_error(self, method, signature, arguments, interface='org.belljar1.Project', path='/org/belljar1/projects/demo'):
        with self.assertRaises(GLib.Error) as caught:
            self.daemon.connection.call_sync('org.belljar1', path, interface, method, GLib.Variant(signature, arguments), None, 0, -1, None)
        return caught.exception.message

    def test_limit(self):
        for _number in range(1000):
            self.daemon.connection.call_sync('org.belljar1', '/org/belljar1/projects/demo', 'org.belljar1.Project', 'AddTask',
                                             GLib.Variant('(s)', ('x',)), None, 0, -1, None)
        self.assertIn('1000 items', self.bad(1, 'project', 'tasks', 'demo', '--add', 'one more'))
        self.assertEqual(len(self.listed()), 1000)

    def test_texts_are_escaped(self):
        self.add('evil\x1b[31m\nproject\u202e')
        shown = self.good('project', 'tasks', 'demo')
        self.assertEqual(len(shown.splitlines()), 1)
        self.assertNotIn('\x1b', shown)
        self.assertNotIn('\u202e', shown)
        self.assertEqual(self.listed()[0]['text'], 'evil\x1b[31m\nproject\u202e')


class Room(unittest.TestCase):
    """disk and prune, on a state folder with sessions of long ago."""

    KEEP = '[projects]\nevidence=300K\nevidence-keep=1d\n'
    DAY = 24 * 60 * 60

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(bt.Daemon(image=None, config=cls.KEEP))
        cls.daemon.cli('project', 'create', 'demo')
        cls.daemon.end()
        with sqlite3.connect(os.path.join(cls.daemon.state_dir, 'belljar.db')) as database:
            for name, project, age in (('oldestaa', 'demo', 30), ('olderaaa', 'demo', 20), ('newestaa', 'demo', 10),
                                       ('youngaaa', 'busy', 0.5), ('youngbbb', 'busy', 0.6), ('youngccc', 'busy', 0.7)):
                ended = int(time.time() - age * cls.DAY)
                database.execute(
                    "INSERT INTO sessions VALUES (?, 'task', ?, 'debian', 1, ?, 'finished', 'DONE', 'none', ?, ?, ?, 1, 1, 'tcg', 'x',"
                    " '{}', '', 0)",
                    (name, project, os.getuid(), ended - 60, ended, ended))
                cls.make(name)
        database.close()
        cls.daemon.start()
        cls.make('orphanaa')
        template = os.path.join(cls.daemon.state_dir, 'templates', 'f' * 64)
        os.makedirs(template)
        with open(os.path.join(template, 'template.ini'), 'w', encoding='ascii') as out:
            out.write('[template]\nimage=sha256:gone\n')

    @classmethod
    def make(cls, name, size=140 * 1024):
        evidence = os.path.join(cls.daemon.state_dir, 'sessions', name, 'evidence')
        os.makedirs(evidence)
        with open(os.path.join(evidence, 'transcript.jsonl'), 'wb') as out:
            out.write(os.urandom(size))

    def folders(self):
        return set(os.listdir(os.path.join(self.daemon.state_dir, 'sessions')))

    def sessions(self):
        return {row['session'] for row in self.daemon.cli_json('sessions')[1]}

    def test_room(self):
        before = self.check_use()
        names = self.folders()
        ran = self.daemon.cli('prune', '--dry-run')
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertTrue(ran.stdout.startswith('Would remove 3, '), ran.stdout)
        for what in ('oldestaa of demo', 'orphanaa', 'f' * 64):
            self.assertIn(what, ran.stdout)
        self.assertEqual((self.folders(), self.sessions()), (names, names - {'orphanaa'}))
        code, answer = self.daemon.cli_json('prune')
        self.assertEqual(code, 0)
        self.assertTrue(answer['message'].startswith('Removed 3, '), answer)
        left = names - {'oldestaa', 'orphanaa'}  # of the other project all three are younger than a day
        self.assertEqual((self.folders(), self.sessions()), (left, left))
        self.assertEqual(os.listdir(os.path.join(self.daemon.state_dir, 'templates')), [])
        after = {entry['kind']: entry['bytes'] for entry in self.daemon.cli_json('disk')[1]}
        self.assertLessEqual(after['evidence'], before['evidence'] - 2 * 140 * 1024)
        self.assertIn('nothing to remove', self.daemon.cli('prune').stdout)
        self.daemon.end()
        self.daemon.start()
        self.assertEqual(self.sessions(), left)

    def test_bundle_of_what_is_left(self):
        """Of a session whose evidence is damaged there is still something to send."""
        path = os.path.join(self.daemon.folder, 'left.tar.gz')
        ran = self.daemon.cli('bundle', 'newestaa', '-o', path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with tarfile.open(path, 'r:gz') as archive:
            self.assertIn(b'report.json is not here: ', archive.extractfile('belljar-newestaa/README.txt').read())
            self.assertEqual(json.load(archive.extractfile('belljar-newestaa/session.json'))['session'], 'newestaa')

    def check_use(self):
        entries = {entry['kind']: entry for entry in self.daemon.cli_json('disk')[1]}
        self.assertEqual(list(entries), ['images', 'templates', 'projects', 'evidence', 'overlays', 'parked', 'pool', 'database',
                                         'engine', 'other'])
        self.assertEqual((entries['evidence']['count'], entries['templates']['count'], entries['projects']['count']), (7, 1, 1))
        self.assertTrue(all(entry['complete'] for entry in entries.values()))
        self.assertGreaterEqual(entries['evidence']['bytes'], 7 * 140 * 1024)
        self.assertEqual(entries['parked']['bytes'], 0)
        parked = os.path.join(self.daemon.state_dir, 'sessions', 'newestaa', 'parked')
        os.makedirs(parked)
        with open(os.path.join(parked, 'ram'), 'wb') as out:
            out.write(os.urandom(65536))
        again = {entry['kind']: entry['bytes'] for entry in self.daemon.cli_json('disk')[1]}
        self.assertGreaterEqual(again['parked'], 65536)
        os.unlink(os.path.join(parked, 'ram'))
        os.rmdir(parked)
        self.assertIn('total\t', self.daemon.cli('disk').stdout)
        return {kind: entry['bytes'] for kind, entry in entries.items()}


class Page(html.parser.HTMLParser):
    """What a page has in it, and what it would fetch or run."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.handlers, self.policy, self.text, self.pictures = [], [], [], None, '', []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.handlers += [name for name in attributes if name.startswith('on')]
        self.links += [value for name, value in attrs if name in ('src', 'href', 'srcset', 'action', 'data')]
        if attributes.get('http-equiv') == 'Content-Security-Policy':
            self.policy = attributes['content']
        if tag == 'img':
            self.pictures.append(attributes['src'])

    def handle_data(self, data):
        self.text += data


class Afterwards(SessionCase):
    """Sessions in real machines."""

    daemon_class = Daemon
    capabilities = 'tools,vision'
    scenarios = {
        'write': [turn(call('plan_add', text='Write ' + HOSTILE)), turn(call('plan_update', id=1, status='done'),
                       call('screenshot'), call('screenshot')),
                  turn(call('run', command=f"echo '{HOSTILE}'; echo Zeitgeist")),
                  turn(call('write_file', path='made.txt', content='hello\n')), finish('I wrote made.txt. ' + HOSTILE)],
        'idle': [finish('I did nothing.')],
        'slow': [turn(call('run', command='sleep 600'))],
    }

    def add(self, text):
        ran = self.daemon.cli('project', 'tasks', 'work', '--add', text)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    def items(self):
        return {str(task['id']): task for task in self.daemon.cli_json('project', 'tasks', 'work')[1]}

    def test_items_and_what_is_left(self):
        self.import_project('work', {'a.txt': 'a\n'})
        item = self.add(f'Write it with {GITHUB} [scenario write]')
        code, report = self.daemon.cli_json('task', '--project', 'work', '--item', item, '--check', 'grep -q hello made.txt',
                                            '--network', 'none')
        self.assertEqual((code, report['check']['verdict']), (0, 'passes'), report)
        session = report['session']
        task = self.items()[item]
        self.assertEqual((task['status'], task['outcome'], task['verdict']), ('done', 'DONE', 'passes'))
        self.assertEqual([(link['session'], link['outcome']) for link in task['sessions']], [(session, 'DONE')])
        ran = self.daemon.cli('task', '--project', 'work', '--item', item)
        self.assertEqual(ran.returncode, 1)
        self.assertIn('is done: set it to todo first', ran.stderr)
        with self.subTest('plan'):
            self.check_plan(session)
        with self.subTest('search'):
            self.check_search(session)
        with self.subTest('page'):
            self.check_page(session)
        with self.subTest('evidence'):
            self.check_evidence(session)
        with self.subTest('bundle'):
            self.check_bundle(session)
        with self.subTest('open items'):
            self.check_open_items()
        with self.subTest('prune'):
            self.check_prune(session)

    def check_plan(self, session):
        plan = self.daemon.cli_json('plan', session)[1]
        self.assertEqual([(step['id'], step['status']) for step in plan], [(1, 'done')])
        shown = self.daemon.cli('plan', session).stdout
        self.assertEqual(len(shown.splitlines()), 1)
        self.assertNotIn('\u202e', shown)

    def lines(self, session):
        path = os.path.join(self.daemon.state_dir, 'sessions', session, 'evidence', 'transcript.jsonl')
        with open(path, 'rb') as file:
            return file.read().splitlines()

    def check_search(self, session):
        lines = self.lines(session)
        found = self.daemon.cli_json('transcript', session, '--search', 'ZEITgeist')[1]
        self.assertIn('command', {record['type'] for record in found})
        self.assertLess(len(found), len(lines))
        raw = self.daemon.cli('transcript', session, '--search', 'zeitgeist', text=False).stdout.splitlines()
        self.assertEqual(raw, [line for line in lines if b'eitgeist' in line])
        self.assertEqual(self.daemon.cli('transcript', session, '--search', 'no such words').stdout, '')
        shown = self.daemon.cli('transcript', session, '--long').stdout.splitlines()
        self.assertEqual(len(shown), len(lines))
        for line, text in zip(lines, shown):
            digest = hashlib.sha256(line).hexdigest()
            self.assertRegex(text, rf'^ *\d+  \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{3}}Z  {digest}  (seen|claimed) ')
        for args in (('--raw', '--long'), ('--html', 'x', '--json'), ('--html', 'x', '--follow'), ('--search', '')):
            self.assertEqual(self.daemon.cli('transcript', session, *args).returncode, 2, args)

    def check_page(self, session):
        path = os.path.join(self.daemon.folder, 'page.html')
        ran = self.daemon.cli('transcript', session, '--html', path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        with open(path, encoding='utf-8') as file:
            text = file.read()
        page = Page(text)
        self.assertTrue({'script', 'link', 'iframe', 'object', 'base', 'form'}.isdisjoint(page.tags), page.tags)
        self.assertEqual(page.handlers, [])
        self.assertNotIn('\u202e', text)
        self.assertIn('<script>alert(1)</script>', page.text, 'the hostile text is there, as text')
        for link in page.links:
            self.assertRegex(link, r'^(#r\d+$|data:image/png;base64,)')
        style = re.search(r'<style>(.*?)</style>', text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self.assertEqual(page.policy, f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
                         "form-action 'none'")
        shots = {json.loads(line)['data']['sha256'] for line in self.lines(session) if json.loads(line)['type'] == 'screenshot'}
        shown = {hashlib.sha256(base64.b64decode(picture.split(',', 1)[1])).hexdigest() for picture in page.pictures}
        self.assertGreater(len(shots), 0)
        self.assertEqual(shown, shots)
        self.assertEqual(len(page.pictures), len(shots), 'each once')
        for line in self.lines(session):
            self.assertIn(hashlib.sha256(line).hexdigest(), page.text)
        self.assertNotIn('does not follow', page.text)
        some = Page(self.daemon.cli('transcript', session, '--html', '-', '--search', 'zeitgeist').stdout)
        self.assertLess(some.tags.count('li'), page.tags.count('li'))
        self.assertNotIn('does not follow', some.text)

    def check_evidence(self, session):
        """Only names that the transcript has, whatever else lies there."""
        name = next(json.loads(line)['data']['file'] for line in self.lines(session) if json.loads(line)['type'] == 'screenshot')
        evidence = os.path.join(self.daemon.state_dir, 'sessions', session, 'evidence')
        with open(os.path.join(evidence, 'screenshots', 'unnamed.png'), 'wb') as out:
            out.write(b'x')
        answer, fds = self.proxy(session).call_with_unix_fd_list_sync('OpenEvidence', GLib.Variant('(s)', (name,)), 0, -1, None, None)
        with os.fdopen(fds.get(answer.unpack()[0]), 'rb') as file, open(os.path.join(evidence, name), 'rb') as own:
            self.assertEqual(file.read(), own.read())
        for other in ('', '.', 'report.json', 'transcript.jsonl', '../../../keys/report.key', 'screenshots/unnamed.png', 'screenshots',
                      '/etc/passwd', name + '/', './' + name, 'x' * 5000, name + '\n'):
            with self.assertRaises(GLib.Error, msg=other) as caught:
                self.proxy(session).call_sync('OpenEvidence', GLib.Variant('(s)', (other,)), 0, -1, None)
            self.assertIn('org.belljar1.Error.NotFound', caught.exception.message)
        os.unlink(os.path.join(evidence, 'screenshots', 'unnamed.png'))

    def unpack(self, path):
        with tarfile.open(path, 'r:gz') as archive:
            return {member.name.split('/', 1)[1]: archive.extractfile(member).read() for member in archive}

    def check_bundle(self, session):
        os.environ['BELLJAR_TEST_TOKEN'] = OWN
        self.addCleanup(os.environ.pop, 'BELLJAR_TEST_TOKEN')
        path = os.path.join(self.daemon.folder, 'bundle.tar.gz')
        ran = self.daemon.cli('bundle', session, '-o', path)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        files = self.unpack(path)
        self.assertLessEqual({'README.txt', 'report.json', 'session.json', 'transcript.jsonl', 'doctor.json', 'versions.json'}, set(files))
        self.assertEqual(json.loads(files['report.json'])['session'], session)
        self.assertEqual(json.loads(files['versions.json'])['command'], json.loads(files['versions.json'])['version'])
        self.assertEqual(len(files['transcript.jsonl'].splitlines()), len(self.lines(session)))
        self.check_secrets(b''.join(files.values()))
        for name in os.listdir(os.path.join(self.daemon.state_dir, 'keys')):
            with open(os.path.join(self.daemon.state_dir, 'keys', name), 'rb') as file:
                key = file.read()
            if not name.endswith('.pub'):
                with self.assertRaises(AssertionError, msg='the check itself would see it'):
                    self.check_secrets(b'x' + base64.b64encode(key) + b'x')
        self.assertIn(GITHUB.encode(), b''.join(self.lines(session)), 'it was there to be left out')
        self.assertIn(b'I wrote made.txt', files['transcript.jsonl'])
        ran = self.daemon.cli('bundle', session, '--no-model-text', '-o', '-', text=False)
        less = self.unpack_bytes(ran.stdout)
        self.assertNotIn(b'I wrote made.txt', b''.join(less.values()))
        self.assertIn(b'Zeitgeist', less['transcript.jsonl'], 'commands stay')
        self.check_secrets(b''.join(less.values()))

    def unpack_bytes(self, data):
        with tarfile.open(fileobj=io.BytesIO(data), mode='r:gz') as archive:
            return {member.name.split('/', 1)[1]: archive.extractfile(member).read() for member in archive}

    def check_secrets(self, content):
        """Neither what the daemon was told to keep, nor its key in any form, nor a token that a person wrote."""
        for secret in (SECRET, GITHUB, OWN):
            self.assertNotIn(secret.encode(), content)
        keys = os.path.join(self.daemon.state_dir, 'keys')
        private = [name for name in os.listdir(keys) if not name.endswith('.pub')]
        self.assertNotEqual(private, [])
        for name in private:
            with open(os.path.join(keys, name), 'rb') as file:
                key = file.read()
            lines = [line for line in key.splitlines() if len(line) > 20 and b'-----' not in line]
            for form in (key, base64.b64encode(key).rstrip(b'='), key.hex().encode(), *lines):
                self.assertNotIn(form, content)

    def check_open_items(self):
        """A check that fails leaves an item open; so does a daemon that dies."""
        item = self.add('Do nothing')
        code, report = self.daemon.cli_json('task', 'Idle [scenario idle]', '--project', 'work', '--item', item, '--check', 'exit 3',
                                            '--network', 'none')
        self.assertEqual(code, 6, report)
        self.assertEqual((self.items()[item]['status'], self.items()[item]['verdict']), ('todo', 'failed'))
        started = self.daemon.cli('task', '[scenario slow]', '--project', 'work', '--item', item, '--network', 'none', '--detach')
        second = started.stdout.strip()
        self.assertEqual((self.items()[item]['status'], self.items()[item]['sessions'][0]['outcome']), ('doing', ''))
        self.wait_state(second, 'running')
        self.daemon.kill()
        self.daemon.start()
        task = self.items()[item]
        self.assertEqual((task['status'], task['outcome']), ('todo', 'FAILED'))
        self.assertEqual([link['session'] for link in task['sessions']], [second, report['session']])

    def check_prune(self, session):
        """With a cap that nothing fits into: what is over goes by itself when a session ends, but the newest; what works stays."""
        newest = self.items()['2']['sessions'][0]['session']
        self.daemon.end()
        self.daemon.config = '[projects]\nevidence=1K\nevidence-keep=0\n'
        self.daemon.write_config()
        self.daemon.start()
        first, second = self.open_session(network='none'), self.open_session(network='none')
        ran = self.daemon.cli('prune', '--dry-run')
        self.assertIn(session, ran.stdout)
        self.assertNotIn('template', ran.stdout, 'that of the image is in use')
        for stays in (newest, first, second):
            self.assertNotIn(stays, ran.stdout)
        self.assertEqual(self.daemon.cli('screenshot', first, '-o', os.path.join(self.daemon.folder, 'x.png')).returncode, 0)
        self.assertEqual(self.daemon.cli('stop', first).returncode, 0)
        stay = {newest, first, second}
        bt.wait_until(lambda: {row['session'] for row in self.daemon.cli_json('sessions')[1]} == stay, 'old sessions to go', 60)
        bt.wait_until(lambda: set(os.listdir(os.path.join(self.daemon.state_dir, 'sessions'))) == stay, 'their folders to go', 60)
        self.assertEqual(self.daemon.cli('report', first).returncode, 5)
        self.assertEqual(self.execute(second, 'true').returncode, 0)
        self.assertEqual(self.items()['1']['sessions'][0]['session'], session, 'the list keeps what it noted')
        self.assertEqual(self.daemon.cli('stop', second).returncode, 0)


if __name__ == '__main__':
    unittest.main(verbosity=2)
