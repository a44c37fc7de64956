# SPDX-License-Identifier: GPL-3.0-or-later
"""What README, CONTRIBUTING and the manual pages say is compared with the programs, the interfaces and the tree."""
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree as xml

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'lib'))
import belljar_test as bt  # noqa: E402  pylint: disable=wrong-import-position

INTERFACES = ('Agent', 'Gateway', 'Image', 'Job', 'Manager', 'Project', 'Session')
PUBLIC = ('Image', 'Job', 'Manager', 'Project', 'Session')
POLKIT = 'org.belljar1.Polkit'
# Chosen at run time, not written in the XML: what belongs to somebody else.
OTHERS = {'org.belljar1.view-other', 'org.belljar1.session.control-other', 'org.belljar1.job.cancel-other'}


def read(*path):
    with open(os.path.join(bt.ROOT, *path), encoding='utf-8') as file:
        return file.read()


def man(name):
    """A manual page as one line of words: macros and escapes out, "Fl -json" is "--json"."""
    text = re.sub(r'\\\n', ' ', read('data', 'man', name))
    text = re.sub(r'\\[&|]', '', text)
    return re.sub(r'\bFl -([a-z])', r'--\1', text)


def help_of(program, *args):
    ran = subprocess.run([program, *args, '--help'], env={**os.environ, 'LC_ALL': 'C.UTF-8'}, capture_output=True, text=True,
                         timeout=60, check=True)
    return ran.stdout


def verbs_of_help():
    return re.findall(r'^  ([a-z-]+(?: [a-z-]+)?) {2,}\S', help_of(bt.CLI), re.MULTILINE)


def options_of(text):
    """Long options of a GOption help, without --help and the groups of help."""
    return set(re.findall(r'^ .*?--([a-z][a-z-]*)', text, re.MULTILINE)) - {'help', 'help-all'}


def blocks(text, language):
    return re.findall(rf'^```{re.escape(language)}\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)


class Bus(unittest.TestCase):
    """The lines that README shows to authors of scripts."""

    def test_busctl(self):
        lines = [line for block in blocks(read('README.md'), 'sh busctl') for line in block.splitlines() if line]
        self.assertGreater(len(lines), 5)
        with bt.Daemon(image=None) as daemon:
            for line in lines:
                with self.subTest(line):
                    ran = subprocess.run(['/bin/sh', '-c', line], env=daemon.environ(), capture_output=True, text=True,
                                         timeout=60, check=False)
                    self.assertEqual(ran.returncode, 0, ran.stderr)
                    self.assertEqual(ran.stderr, '')

    def test_variable(self):
        """Without it busctl would ask the person's own bus."""
        for block in blocks(read('README.md'), 'sh busctl'):
            for line in block.splitlines():
                self.assertTrue(line.startswith('busctl --address=$BELLJAR_BUS '), line)


class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verbs = verbs_of_help()
        cls.table = re.findall(r'^\| `([a-z -]+)` \| (.+) \| `belljar (.+)` \|$', read('README.md'), re.MULTILINE)

    def test_readme_has_the_verbs(self):
        self.assertGreater(len(self.verbs), 20)
        self.assertEqual([row[0] for row in self.table], self.verbs)

    def test_readme_examples(self):
        for verb, _meaning, example in self.table:
            self.assertTrue(f'{example} '.startswith(f'{verb} '), example)
            self.assertLessEqual(set(re.findall(r' --([a-z-]+)', example)), options_of(help_of(bt.CLI, *verb.split())), example)

    def test_readme_names_no_other(self):
        """Every "belljar VERB" anywhere in README is one."""
        words = {verb.split()[0] for verb in self.verbs} | {'VERB', '--help'}
        for word in re.findall(r'(?:^|[`/$ ])belljar ([A-Za-z-]+)', '\n'.join(self.code('README.md')), re.MULTILINE):
            self.assertIn(word, words)

    @staticmethod
    def code(path):
        text = read(path)
        fenced = re.findall(r'^```[^\n]*\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
        return fenced + re.findall(r'`([^`\n]+)`', re.sub(r'^```.*?^```$', '', text, flags=re.MULTILINE | re.DOTALL))

    def items(self):
        """belljar.1: verb to its whole synopsis, of items that begin with "Cm word"."""
        text = re.search(r'^\.Sh VERBS\n(.*?)^\.Sh ', man('belljar.1'), re.MULTILINE | re.DOTALL).group(1)
        found = {}
        for line in re.findall(r'^\.It Cm (.*)$', text, re.MULTILINE):
            verb = re.match(r'[a-z-]+(?: [a-z-]+)?', line).group(0)
            found[verb] = line
        return found

    def test_man_has_the_verbs(self):
        self.assertEqual(sorted(self.items()), sorted(self.verbs))

    def test_man_has_the_options(self):
        for verb, line in self.items().items():
            with self.subTest(verb):
                known = options_of(help_of(bt.CLI, *verb.split()))
                named = set(re.findall(r'--([a-z][a-z-]*)', line))
                short = set(re.findall(r'Fl ([a-z])\b', line))
                if short:
                    text = help_of(bt.CLI, *verb.split())
                    named |= {re.search(rf'-{letter}, --([a-z-]+)', text).group(1) for letter in short}
                self.assertEqual(named, known)

    def test_groups(self):
        for group in {verb.split()[0] for verb in self.verbs if ' ' in verb}:
            ours = [verb for verb in self.verbs if verb.startswith(group + ' ')]
            found = re.findall(r'^  ([a-z-]+ [a-z-]+) {2,}\S', help_of(bt.CLI, group), re.MULTILINE)
            self.assertEqual(found, ours)

    def test_help_has_examples(self):
        for verb in self.verbs:
            self.assertIn(f'\n  belljar {verb}', help_of(bt.CLI, *verb.split()).replace('tar c . | ', ''))

    @staticmethod
    def codes(text):
        """Exit codes in a sentence like "0 this or that, 3 something": code to the words behind it."""
        pairs = re.findall(r'(?:^|[\s(:,])(\d) (.*?)(?=,\s+\d |[.;]|$)', ' '.join(text.split()))
        return {int(code): words for code, words in pairs}

    def test_exit_codes(self):
        told = re.search(r'Exit code: (.*?\.)(?:\n|$)', help_of(bt.CLI, 'task'), re.DOTALL).group(1)
        ours = re.search(r'Exit codes of `task` and `report`: (.*? usage\.)', read('README.md'), re.DOTALL).group(1)
        told, ours = self.codes(told), self.codes(ours)
        self.assertEqual(sorted(told), list(range(7)))
        self.assertEqual(sorted(ours), sorted(told))
        page = re.search(r'^\.Sh EXIT STATUS\n(.*?)^\.Sh ', man('belljar.1'), re.MULTILINE | re.DOTALL).group(1)
        self.assertEqual([int(code) for code in re.findall(r'^\.It (\d)$', page, re.MULTILINE)], sorted(told))
        for code, word in ((0, 'proved'), (0, 'passes'), (3, 'needs input'), (4, 'in progress'), (6, 'failed'), (1, 'error')):
            self.assertIn(word, told[code])
            self.assertIn(word, ours[code])

    def test_exit_codes_in_the_source(self):
        table = re.search(r'typedef enum\n\{(.*?)\} BjExit;', read('cli', 'bj-cli.h'), re.DOTALL).group(1)
        self.assertEqual(sorted(int(code) for code in re.findall(r'= (\d),', table)), list(range(7)))

    def test_usage_is_2(self):
        for args in ((), ('nonsense',), ('task',), ('image',), ('image', 'nonsense'), ('report', 'k3', '--nonsense')):
            ran = subprocess.run([bt.CLI, *args], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ran.returncode, 2, args)


class Config(unittest.TestCase):
    @staticmethod
    def known():
        return set(re.findall(r'^  KEY \("([a-z-]+)", "([a-z-]+)",', read('daemon', 'store', 'bj-config.c'), re.MULTILINE))

    def test_man_has_the_keys(self):
        text = man('belljar.conf.5').split('.Sh FILES')[0]
        parts = re.split(r'^\.Ss \[([a-z-]+)\]$', text, flags=re.MULTILINE)
        named = {(group, key) for group, part in zip(parts[1::2], parts[2::2])
                 for key in re.findall(r'^\.It Cm ([a-z-]+)$', part, re.MULTILINE)}
        self.assertGreater(len(self.known()), 15)
        self.assertEqual(named, self.known())

    def keys_of(self, text):
        group, found = None, set()
        for line in text.splitlines():
            opened = re.match(r'\[([a-z-]+)\]', line)
            if opened:
                group = opened.group(1)
            elif '=' in line:
                found.add((group, line.split('=')[0]))
        return found

    def test_examples(self):
        page = re.search(r'^\.Sh EXAMPLES\n.*?\n(\[.*?)^\.Ed', man('belljar.conf.5'), re.MULTILINE | re.DOTALL).group(1)
        self.assertLessEqual(self.keys_of(page), self.known())
        *configs, project = blocks(read('README.md'), 'ini')
        self.assertEqual(len(configs), 2)
        self.assertLessEqual(self.keys_of('\n'.join(configs)), self.known())
        settings = set(re.findall(r'\{ "([a-z]+)", "([a-z]+)", take_', read('daemon', 'project', 'bj-project-settings.c')))
        self.assertEqual(self.keys_of(project), settings)

    def test_keys_that_change_nothing(self):
        """The page says so of exactly those that no other file of the daemon reads."""
        fields = dict(re.findall(r'KEY \("[a-z-]+", "([a-z-]+)", \w+, (\w+),', read('daemon', 'store', 'bj-config.c')))
        sources = ''
        for folder, _folders, names in os.walk(os.path.join(bt.ROOT, 'daemon')):
            sources += ''.join(read(folder, name) for name in names if name.endswith('.c') and name != 'bj-config.c')
        idle = {key for key, field in fields.items() if not re.search(rf'config->{field}\b', sources)}
        items = re.split(r'^\.It Cm ', man('belljar.conf.5'), flags=re.MULTILINE)[1:]
        named = {item.split('\n')[0] for item in items if 'Changes nothing yet' in item}
        self.assertEqual(named, idle - {'backend'})  # which has only one value


class Programs(unittest.TestCase):
    def check(self, program, page):
        text = man(page)
        self.assertEqual(set(re.findall(r'--([a-z][a-z-]*)', text)), options_of(help_of(program)))

    def test_belljard(self):
        text = man('belljard.8')
        options = options_of(help_of(bt.DAEMON))
        self.assertEqual(set(re.findall(r'^\.It --([a-z-]+)$', text, re.MULTILINE)), options)
        self.assertEqual(set(re.findall(r'^\.Op --([a-z-]+)', text, re.MULTILINE)), options)

    def test_agent(self):
        self.check(os.path.join(bt.BUILD, 'agent', 'belljar-agent'), 'belljar-agent.8')

    def test_gateway(self):
        self.check(os.path.join(bt.BUILD, 'gateway', 'belljar-gateway'), 'belljar-gateway.8')

    def test_readme(self):
        """Options of belljard and quickstart that README names."""
        text = read('README.md')
        for line in re.findall(r'build/daemon/belljard (.*)', text):
            self.assertLessEqual(set(re.findall(r'--([a-z-]+)=', line)), options_of(help_of(bt.DAEMON)))
        known = re.findall(r"'--([a-z-]+)'", read('tests', 'lib', 'quickstart.py'))
        for line in re.findall(r'\./quickstart (--.*)', text):
            self.assertLessEqual(set(re.findall(r'--([a-z-]+)', line)), set(known))


class Interfaces(unittest.TestCase):
    @staticmethod
    def parse(name):
        """Children of the one interface; comments are elements whose tag is a function."""
        parser = xml.XMLParser(target=xml.TreeBuilder(insert_comments=True))
        tree = xml.fromstring(read('dbus', f'org.belljar1.{name}.xml'), parser)
        return tree, tree.find('interface')

    def test_all_are_here(self):
        files = sorted(name for name in os.listdir(os.path.join(bt.ROOT, 'dbus')) if name.endswith('.xml'))
        self.assertEqual(files, [f'org.belljar1.{name}.xml' for name in INTERFACES])

    def test_interfaces_are_explained(self):
        for name in INTERFACES:
            tree, interface = self.parse(name)
            self.assertEqual(interface.get('name'), f'org.belljar1.{name}')
            comments = [child.text.strip() for child in tree if child.tag is xml.Comment]
            self.assertTrue(any(text.startswith(f'org.belljar1.{name}:') for text in comments), name)

    def documented(self, interface):
        """Method or signal to the comment right before it."""
        before, found = None, {}
        for child in interface:
            if child.tag in ('method', 'signal'):
                found[child.get('name')] = before
            before = child.text.strip() if child.tag is xml.Comment else None
        return found

    def test_comments_are_of_what_follows(self):
        """A comment that begins with a name stands before the method of that name, and its @words are arguments."""
        for name in INTERFACES:
            _tree, interface = self.parse(name)
            for member in interface.findall('method') + interface.findall('signal'):
                comment = self.documented(interface)[member.get('name')]
                if comment is None:
                    continue
                with self.subTest(f'{name}.{member.get("name")}'):
                    self.assertTrue(comment.startswith(member.get('name') + ':'), comment)
                    arguments = {argument.get('name') for argument in member.findall('arg')}
                    self.assertLessEqual(set(re.findall(r'@(\w+)', comment)), arguments)

    def test_every_method_is_explained(self):
        for name in INTERFACES:
            for member, comment in self.documented(self.parse(name)[1]).items():
                self.assertIsNotNone(comment, f'{name}.{member}')

    def test_readme_calls(self):
        """Interfaces, methods and signatures in README's scripts are those of the XML."""
        text = '\n'.join(blocks(read('README.md'), 'sh') + blocks(read('README.md'), 'sh busctl')).replace('\\\n', ' ')
        calls = re.findall(r"call org\.belljar1 \S+ org\.belljar1\.(\w+) (\w+)(?:[ ]+'?([a-z{}()]+)'? \S)?", text)
        self.assertGreater(len(calls), 5)
        for name, method, signature in calls:
            _tree, interface = self.parse(name)
            found = [child for child in interface.findall('method') if child.get('name') == method]
            self.assertEqual(len(found), 1, f'{name}.{method}')
            arguments = [argument.get('type') for argument in found[0].findall('arg') if argument.get('direction') == 'in']
            self.assertEqual(signature, ''.join(arguments), f'{name}.{method}')
        for name, prop in re.findall(r'get-property org\.belljar1 \S+ org\.belljar1\.(\w+) (\w+)', text):
            _tree, interface = self.parse(name)
            self.assertIn(prop, [child.get('name') for child in interface.findall('property')])

    def test_agent_verbs(self):
        _tree, interface = self.parse('Agent')
        listed = [line.split()[0] for line in read('tests', 'unit', 'bus', 'agent-verbs.txt').splitlines()[1:]]
        self.assertEqual(sorted(method.get('name') for method in interface.findall('method')), listed)

    def test_actions(self):
        """The XML, the list in the unit test and the policy file agree."""
        used = set()
        for name in PUBLIC:
            _tree, interface = self.parse(name)
            for method in interface.findall('method'):
                used |= {note.get('value') for note in method.findall('annotation') if note.get('name') == POLKIT}
        table = re.search(r'actions\[\] = \{(.*?)NULL', read('tests', 'unit', 'bus', 'test-contract.c'), re.DOTALL).group(1)
        listed = set(re.findall(r'"([^"]+)"', table)) - {'open'}
        policy = {action.get('id') for action in xml.fromstring(
            read('data', 'polkit', 'org.belljar1.policy').split('?>', 1)[1]).findall('action')}
        self.assertLessEqual(used - {'open'}, listed)
        self.assertEqual(listed | OTHERS, policy)

    def test_bus_policy(self):
        allowed = re.findall(r'send_interface="org\.belljar1\.(\w+)"', read('data', 'dbus', 'org.belljar1.conf'))
        self.assertEqual(sorted(allowed), sorted(PUBLIC))


class Tree(unittest.TestCase):
    def test_layout(self):
        text = read('CONTRIBUTING.md')
        table = re.search(r'^\| folder \| what \| may use \|\n\|[-|]+\n(.*?)\n\n', text, re.MULTILINE | re.DOTALL).group(1)
        folders = re.findall(r'^\| `([a-z]+)/` \|', table, re.MULTILINE)
        self.assertGreater(len(folders), 8)
        for folder in folders:
            self.assertTrue(os.path.isdir(os.path.join(bt.ROOT, folder)), folder)
        with_code = {name for name in os.listdir(bt.ROOT) if os.path.exists(os.path.join(bt.ROOT, name, 'meson.build'))}
        self.assertEqual(set(folders), {name for name in with_code if not name.startswith('build')}
                         - {'data', 'images', 'po', 'tests'})

    def test_paths(self):
        """What stands in backticks and looks like a path of ours is there."""
        tops = {name for name in os.listdir(bt.ROOT) if not name.startswith(('build', '.'))}
        for page in ('README.md', 'CONTRIBUTING.md', 'SECURITY.md'):
            for path in re.findall(r'`(?:\./)?([A-Za-z][\w./*-]*)`', read(page)):
                if path.split('/')[0] in tops and '/' in path and '*' not in path:
                    self.assertTrue(os.path.exists(os.path.join(bt.ROOT, path)), f'{page}: {path}')

    def test_daemon_folders(self):
        flow = re.search(r'In `daemon/` data flows one way: (.*?)\.\n', read('CONTRIBUTING.md'), re.DOTALL).group(1)
        named = re.findall(r'([a-z]+)/', flow)
        found = [name for name in os.listdir(os.path.join(bt.ROOT, 'daemon'))
                 if os.path.exists(os.path.join(bt.ROOT, 'daemon', name, 'meson.build'))]
        self.assertEqual(sorted(named), sorted(found))

    def test_links(self):
        tracked = subprocess.run(['git', 'ls-files', '*.md'], cwd=bt.ROOT, capture_output=True, text=True, check=True)
        pages = [page for page in tracked.stdout.split() if not page.startswith('tests/replay/')]
        self.assertIn('README.md', pages)
        for page in pages:
            for target in re.findall(r'\]\(([^)\s]+)\)', read(page)):
                if not re.match(r'[a-z]+:', target):
                    self.check_link(page, target)

    def check_link(self, page, target):
        path, _hash, anchor = target.partition('#')
        found = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        self.assertTrue(os.path.exists(os.path.join(bt.ROOT, found)), f'{page}: {target}')
        if anchor:
            titles = re.findall(r'^#+ (.*)$', read(found), re.MULTILINE)
            slugs = [re.sub(r'[^\w -]', '', title.lower()).replace(' ', '-') for title in titles]
            self.assertIn(anchor, slugs, f'{page}: {target}')

    def test_named_pages(self):
        """Pages that are named without a link."""
        for page in ('README.md', 'CONTRIBUTING.md', 'SECURITY.md'):
            for name in re.findall(r'\b([A-Z]+\.md)\b', read(page)):
                self.assertTrue(os.path.exists(os.path.join(bt.ROOT, name)), f'{page}: {name}')

    def test_man_pages_are_installed(self):
        pages = {name for name in os.listdir(os.path.join(bt.ROOT, 'data', 'man')) if re.search(r'\.\d$', name)}
        installed = re.search(r'install_man\((.*?)\)', read('data', 'man', 'meson.build'), re.DOTALL).group(1)
        self.assertEqual(set(re.findall(r"'([^']+)'", installed)), pages)
        for page in pages:
            for name, section in re.findall(r'^\.Xr (belljar\S*) (\d)', man(page), re.MULTILINE):
                self.assertIn(f'{name}.{section}', pages)


class Verdicts(unittest.TestCase):
    def test_readme(self):
        named = re.findall(r'^\| `([a-z-]+)` \| [^|]+ \|$', read('README.md'), re.MULTILINE)
        known = re.findall(r'return "([a-z-]+)";', re.search(r'bj_verdict_to_string.*?\n\}', read('evidence', 'bj-verdict.c'),
                                                           re.DOTALL).group(0))
        self.assertEqual(named, known)


if __name__ == '__main__':
    unittest.main()
