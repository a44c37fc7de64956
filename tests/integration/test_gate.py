# SPDX-License-Identifier: GPL-3.0-or-later
"""Every method of every public interface against a real polkitd, as members of group belljar, a stranger and root.

What is expected follows from the annotations in dbus/*.xml and from who owns the object. Nothing is interactive.
The tests run inside polkit/rig; run from outside they put themselves there.
"""

import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BELLJAR_BUILD", os.path.join(ROOT, "build"))
RIG = os.path.join(ROOT, "tests", "integration", "polkit", "rig")
CALLER = os.path.join(ROOT, "tests", "integration", "polkit", "caller.py")
INSIDE = "RIG_WORK" in os.environ
DEADLINE = 120

PUBLIC = ["Manager", "Image", "Project", "Session", "Job"]
REFUSED = {"org.belljar1.Error.Denied", "org.belljar1.Error.AuthNeeded"}
# What the rules of group belljar let a member do; an action on what belongs to others becomes the stronger one first.
MEMBER_MAY = {"org.belljar1.view", "org.belljar1.session.start", "org.belljar1.session.control",
              "org.belljar1.project.create", "org.belljar1.job.cancel"}
MEMBER_MAY_OWN = {"org.belljar1.project.delete", "org.belljar1.project.publish"}
STRONGER = {action: action + "-other" for action in
            ("org.belljar1.view", "org.belljar1.session.control", "org.belljar1.job.cancel")}

SESSION = "/org/belljar1/sessions/aaaaaaaa"
IMAGE = "/org/belljar1/images/debian"
UIDS = {"root": 0, "bjmember": 5001, "bjmember2": 5002, "bjstranger": 5003}

# Parameters for each method, as GVariant text. {session} is a session's path, {name} a new name.
PARAMETERS = {
    ("Manager", "RunTask"): "('hello', @a{{sv}} {{'no-such-option': <1>}})",
    ("Manager", "OpenSession"): "(@a{{sv}} {{'no-such-option': <1>}},)",
    ("Manager", "Answer"): "(objectpath '{session}', 'text')",
    ("Manager", "WaitReport"): "(objectpath '{session}', uint32 0)",
    ("Manager", "CreateProject"): "('{name}', @a{{sv}} {{}})",
    ("Manager", "BuildImage"): "('debian', @a{{sv}} {{'no-such-option': <1>}})",
    ("Manager", "Doctor"): "()",
    ("Manager", "DiskUsage"): "()",
    ("Manager", "Prune"): "(@a{{sv}} {{'no-such-option': <1>}},)",
    ("Image", "Freeze"): "()",
    ("Image", "Verify"): "()",
    ("Image", "SetDefault"): "()",
    ("Image", "Delete"): "()",
    ("Project", "Details"): "()",
    ("Project", "Log"): "(uint32 5,)",
    ("Project", "ListTasks"): "()",
    ("Project", "AddTask"): "('x',)",
    ("Project", "SetTask"): "(uint32 1, @a{{sv}} {{'no-such-option': <1>}})",
    ("Project", "CopyIn"): "(handle 0, @a{{sv}} {{'path': <b'../out'>}})",
    ("Project", "CopyOut"): "(handle 0, @a{{sv}} {{'path': <b'../out'>}})",
    ("Project", "Delete"): "()",
    ("Session", "Answer"): "('text',)",
    ("Session", "Details"): "()",
    ("Session", "Keep"): "()",
    ("Session", "Stop"): "()",
    ("Session", "Pause"): "()",
    ("Session", "Resume"): "()",
    ("Session", "Extend"): "(uint32 60,)",
    ("Session", "Screenshot"): "()",
    ("Session", "OpenTranscript"): "(uint64 0,)",
    ("Session", "OpenEvidence"): "('screenshots/0123456789abcdef.png',)",
    ("Session", "ListPlan"): "()",
    ("Session", "Exec"): "([b'true'], @a{{sv}} {{}})",
    ("Session", "Report"): "()",
    ("Session", "Delete"): "()",
    ("Job", "Cancel"): "()",
}
# These take the object away: last.
DESTRUCTIVE = [("Session", "Delete"), ("Project", "Delete"), ("Image", "Delete")]


def read_contract():
    """{(interface, method): action}, as the XML says."""
    methods = {}
    for name in PUBLIC:
        tree = ElementTree.parse(os.path.join(ROOT, "dbus", f"org.belljar1.{name}.xml"))
        for method in tree.getroot().iter("method"):
            actions = [a.get("value") for a in method.findall("annotation") if a.get("name") == "org.belljar1.Polkit"]
            methods[(name, method.get("name"))] = actions[0] if actions else None
    return methods


CONTRACT = read_contract()


def wait_until(condition, what):
    deadline = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {DEADLINE} s for {what}")
        time.sleep(0.05)


class Caller:
    """A process that calls as one user."""

    def __init__(self, user):
        self.user = user
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user != "root" else []
        self.process = subprocess.Popen([*become, "/usr/bin/python3", CALLER], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.projects = 0

    def close(self):
        self.process.stdin.close()
        self.process.wait(DEADLINE)
        self.process.stdout.close()

    def request(self, path, interface, method, parameters, interactive=False):
        self.process.stdin.write(json.dumps({"path": path, "interface": interface, "method": method,
                                             "parameters": parameters, "interactive": interactive}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def call(self, key, path, interactive=False):
        self.projects += 1
        name = f"{self.user}-{self.projects}"
        parameters = PARAMETERS[key].format(session=SESSION, name=name)
        return self.request(path, f"org.belljar1.{key[0]}", key[1], parameters, interactive)

    def managed(self):
        answer = self.request("/org/belljar1", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "()")
        return answer["reply"][0]


def fill_store(state):
    """A finished session of bjmember and an image, as an earlier run of the daemon would have left them."""
    with sqlite3.connect(os.path.join(state, "belljar.db")) as database:
        database.execute("INSERT INTO sessions VALUES ('aaaaaaaa', 'task', '', 'debian', 1, 5001, 'finished', 'DONE', 'none',"
                         " 1, 2, 3, 0, 0, 'tcg', 'hello', '{}', '', 0)")
        database.execute("INSERT INTO images VALUES ('debian', 1, 'Debian 12', 'debian', 'unfrozen', '', 1, 1, 1, 1, 1)")


class TestGate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = os.path.join(os.environ["RIG_WORK"], "state")
        cls.daemon = None
        cls.start_daemon()
        cls.stop_daemon()
        fill_store(cls.state)
        cls.start_daemon()
        cls.callers = {user: Caller(user) for user in UIDS}
        cls.covered = set()

    @classmethod
    def tearDownClass(cls):
        for caller in cls.callers.values():
            caller.close()
        cls.stop_daemon()

    @classmethod
    def start_daemon(cls):
        log = open(os.path.join(os.environ["RIG_WORK"], "belljard.log"), "ab")
        with log:
            cls.daemon = subprocess.Popen([os.path.join(BUILD, "daemon", "belljard"), "--bus=system", "--auth=polkit",
                                           f"--state-dir={cls.state}", "--log-level=debug"], stderr=log)
        probe = ["busctl", "--system", "status", "org.belljar1"]
        try:
            wait_until(lambda: cls.daemon.poll() is not None or
                       subprocess.run(probe, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      check=False).returncode == 0, "the daemon")
            if cls.daemon.poll() is not None:
                raise AssertionError("belljard did not start")
        except AssertionError:
            with open(log.name, encoding="utf-8", errors="replace") as text:
                sys.stderr.write(text.read())
            raise

    @classmethod
    def stop_daemon(cls):
        cls.daemon.send_signal(signal.SIGTERM)
        code = cls.daemon.wait(DEADLINE)
        if code != 0:
            raise AssertionError(f"belljard exited with {code}")

    def path_for(self, interface):
        if interface == "Manager":
            return "/org/belljar1"
        if interface == "Session":
            return SESSION
        if interface == "Image":
            return IMAGE
        kind = "/org/belljar1/projects/" if interface == "Project" else "/org/belljar1/jobs/"
        paths = sorted(path for path in self.callers["root"].managed() if path.startswith(kind))
        self.assertTrue(paths, f"there is a {interface}")
        return paths[0]

    def owner_of(self, interface, path):
        if interface not in ("Project", "Session", "Job"):
            return None
        properties = self.callers["root"].managed()[path][f"org.belljar1.{interface}"]
        return properties["OwnerUid" if interface == "Job" else "Owner"]

    def expected(self, user, key, owner, with_rules):
        action = CONTRACT[key]
        other = owner is not None and owner != UIDS[user]
        if user == "root":
            return True
        if not with_rules or user == "bjstranger":
            return False
        if other:
            action = STRONGER.get(action, action)
        elif key in (("Manager", "WaitReport"), ("Manager", "Answer")) and UIDS[user] != UIDS["bjmember"]:
            action = STRONGER[action]
        return action in MEMBER_MAY or (action in MEMBER_MAY_OWN and owner is not None and not other)

    def check(self, user, key, path, with_rules, interactive=False):
        owner = self.owner_of(key[0], path)
        answer = self.callers[user].call(key, path, interactive)
        allowed = answer.get("error") not in REFUSED
        self.assertEqual(allowed, self.expected(user, key, owner, with_rules), f"{user} {key} on {path}: {answer}")
        self.assertNotIn(answer.get("error"), {"org.freedesktop.DBus.Error.AccessDenied",
                                               "org.freedesktop.DBus.Error.NoReply", "local"}, f"{user} {key}: {answer}")
        self.covered.add((user, with_rules, key))

    def sweep(self, user, keys, with_rules, interactive=False):
        for key in keys:
            with self.subTest(user=user, method=key):
                self.check(user, key, self.path_for(key[0]), with_rules, interactive)

    def test_0_every_method_has_an_action_and_parameters(self):
        self.assertEqual(set(PARAMETERS), set(CONTRACT))
        self.assertNotIn(None, CONTRACT.values())
        policy = ElementTree.parse(os.path.join(ROOT, "data", "polkit", "org.belljar1.policy"))
        ids = {action.get("id") for action in policy.getroot().findall("action")}
        needed = set(CONTRACT.values()) - {"open"} | set(STRONGER.values())
        self.assertLessEqual(needed, ids)

    def test_1_without_rules_only_root_may(self):
        self.prepare_objects()
        ordinary = [key for key in CONTRACT if key not in DESTRUCTIVE]
        for user in ("bjstranger", "bjmember"):
            before = set(self.callers["root"].managed())
            self.sweep(user, CONTRACT, with_rules=False)
            self.sweep(user, CONTRACT, with_rules=False, interactive=True)  # there is no agent to ask
            self.assertEqual(before, set(self.callers["root"].managed()), "a refused call changes nothing")
        self.sweep("root", ordinary, with_rules=False)

    def prepare_objects(self):
        root = self.callers["root"]
        self.assertIn("reply", root.request("/org/belljar1", "org.belljar1.Manager", "CreateProject",
                                            "('a-root', @a{sv} {})"))
        self.assertIn("reply", root.request(IMAGE, "org.belljar1.Image", "Verify", "()"))

    def test_2_with_rules_members_may_what_is_theirs(self):
        shutil.copy(os.path.join(ROOT, "data", "polkit", "org.belljar1.rules"), os.environ["RIG_RULES"])
        member = self.callers["bjmember"]
        wait_until(lambda: "reply" in member.call(("Manager", "Doctor"), "/org/belljar1"), "polkitd to read the rules")
        # Their own project and job sort before root's.
        self.assertIn("reply", member.request("/org/belljar1", "org.belljar1.Manager", "CreateProject",
                                              "('a-member', @a{sv} {})"))
        ordinary = [key for key in CONTRACT if key not in DESTRUCTIVE]
        for user in ("bjstranger", "bjmember2"):
            self.sweep(user, CONTRACT, with_rules=True)
        self.sweep("bjmember", ordinary, with_rules=True)
        mine = member.request(IMAGE, "org.belljar1.Image", "Verify", "()")["reply"][0]
        for user in ("bjstranger", "bjmember2", "bjmember"):
            with self.subTest(user=user, job=mine):
                self.check(user, ("Job", "Cancel"), mine, with_rules=True)
        self.sweep("bjmember", DESTRUCTIVE, with_rules=True)
        paths = set(self.callers["root"].managed())
        self.assertNotIn("/org/belljar1/projects/a_2dmember", paths)
        self.assertNotIn(SESSION, paths)
        self.assertIn(IMAGE, paths, "a member may not delete an image")

    def test_3_a_member_may_not_delete_the_project_of_root(self):
        path = "/org/belljar1/projects/a_2droot"
        self.assertEqual(self.owner_of("Project", path), 0)
        self.check("bjmember", ("Project", "Delete"), path, with_rules=True)
        self.check("root", ("Project", "Delete"), path, with_rules=True)
        self.check("root", ("Image", "Delete"), IMAGE, with_rules=True)

    def test_4_properties_cannot_be_set_and_other_interfaces_not_be_called(self):
        for user in UIDS:
            caller = self.callers[user]
            answer = caller.request("/org/belljar1", "org.freedesktop.DBus.Properties", "Set",
                                    "('org.belljar1.Manager', 'Version', <'1'>)")
            self.assertIn("error", answer)
            answer = caller.request("/org/belljar1", "org.freedesktop.DBus.Properties", "Get",
                                    "('org.belljar1.Manager', 'Version')")
            self.assertIn("reply", answer)
            answer = caller.request("/org/belljar1/agent", "org.belljar1.Agent", "GetTask", "()")
            self.assertIn("error", answer)

    def test_5_every_method_was_called_as_everybody(self):
        for user, with_rules in (("bjstranger", False), ("bjmember", False), ("bjstranger", True), ("bjmember2", True),
                                 ("bjmember", True)):
            self.assertEqual({key for who, rules, key in self.covered if (who, rules) == (user, with_rules)},
                             set(CONTRACT), f"{user}, rules: {with_rules}")
        self.assertEqual({key for who, _rules, key in self.covered if who == "root"}, set(CONTRACT) - {("Session", "Delete")})

    def test_6_without_polkitd_everybody_is_refused(self):
        os.kill(int(os.environ["RIG_POLKITD"]), signal.SIGKILL)
        os.waitpid(int(os.environ["RIG_POLKITD"]), 0)
        for user in UIDS:
            answer = self.callers[user].call(("Manager", "Doctor"), "/org/belljar1")
            self.assertEqual(answer.get("error"), "org.belljar1.Error.Denied", answer)
            self.assertIn("polkitd", answer["message"])


class TestRig(unittest.TestCase):
    """The gate, inside a mount and pid namespace; needs root for it."""

    def test_gate_with_real_polkitd(self):
        self.assertEqual(os.geteuid(), 0, "these tests make namespaces and users: run them as root")
        with tempfile.TemporaryDirectory(prefix="bj-rig-", dir="/tmp") as work:
            os.chmod(work, 0o755)
            done = subprocess.run([RIG, work, "/usr/bin/python3", "-m", "unittest", "-v", os.path.abspath(__file__)],
                                  cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
                                  check=False)
            if done.returncode != 0:
                for log in sorted(glob.glob(os.path.join(work, "*.log"))):
                    with open(log, encoding="utf-8", errors="replace") as text:
                        done.stdout += f"\n--- {log}\n{text.read()[-6000:]}"
            self.assertEqual(done.returncode, 0, done.stdout)


def load_tests(loader, _tests, _pattern):
    return loader.loadTestsFromTestCase(TestGate if INSIDE else TestRig)


if __name__ == "__main__":
    unittest.main()
