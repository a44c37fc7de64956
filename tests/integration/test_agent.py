# SPDX-License-Identifier: GPL-3.0-or-later
"""belljar-agent: the real agent and gateway with the scripted model; this test is the daemon and the machine."""

import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import unittest
import unittest.mock

from agent_parts import BUILD, ROOT, Daemon, Gateway, Replay, VerbError, Work, is_sanitized, rss_kib, wait_until

from gi.repository import GLib

SCENARIOS = os.path.join(ROOT, "tests", "replay", "scenarios")
FIX_BUG = os.path.join(ROOT, "tests", "replay", "projects", "fix-bug")
DATA = os.path.join(ROOT, "data", "agent")


def call(tool, /, **arguments):
    return {"name": tool, "arguments": arguments}


def turn(*calls, **more):
    return {"tool_calls": list(calls), **more}


FINISH = turn(call("finish", summary="all done"))


class Web:
    """An HTTP server for one file; /cut always breaks off in the middle."""

    def __init__(self, content, ranges=True):
        self.answers = answers = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                begin = 0
                if ranges and self.headers.get("Range"):
                    begin = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"]).group(1))
                status = 404 if self.path == "/none" else 206 if begin else 200
                body = b"" if status == 404 else content[begin:]
                answers.append((self.path, status, len(body)))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                if begin:
                    self.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
                self.end_headers()
                self.wfile.write(body[:1000] if self.path == "/cut" else body)

            def log_message(self, *_arguments):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_rest):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class AgentCase(unittest.TestCase):
    def setUp(self):
        self.work = Work()
        self.addCleanup(self.work.close)
        self.folder = os.path.join(self.work.path, "project")
        os.mkdir(self.folder)

    def data_with(self, **changes):
        """A copy of the agent's data folder with other parameters."""
        folder = os.path.join(self.work.path, "data")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(DATA, folder)
        path = os.path.join(folder, "agent.ini")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for key, value in changes.items():
            key = key.replace("_", "-")
            lines = [f"{key}={value}" if line.startswith(key + "=") else line for line in text.split("\n")]
            self.assertNotEqual(lines, text.split("\n"), key)
            text = "\n".join(lines)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return folder

    def start(self, scenario, task="do it", options=(), stall=None, data=None, **facts):
        self.replay = Replay(self.work, scenario, *options)
        self.addCleanup(self.replay.close)
        more = {"stall": GLib.Variant("u", stall)} if stall else {}
        self.gateway = Gateway(self.work, self.replay.url, **more)
        self.addCleanup(self.gateway.close)
        self.daemon = Daemon(self.gateway.open_session(), self.folder, task, data or self.data_with(backoff_ms=1),
                             **facts)
        self.addCleanup(self.daemon.close)
        return self.daemon

    def run_to_end(self, scenario, *arguments, code=0, **more):
        daemon = self.start(scenario, *arguments, **more)
        self.assertEqual(daemon.wait(), code, (daemon.failed, daemon.errors))
        return daemon

    def results(self, chat=-1):
        """The tools' results as the model got them in one request."""
        return [json.loads(m["text"]) for m in self.replay.chats()[chat]["messages"] if m["role"] == "tool"]


class WorkTest(AgentCase):
    def test_fix_bug(self):
        """The quickstart's scenario, with a real project and real commands."""
        for name in os.listdir(FIX_BUG):
            if name.endswith((".py", ".md")):
                shutil.copy(os.path.join(FIX_BUG, name), self.folder)
        check = ["python3", "-m", "unittest", "-q", "test_wordcount"]
        self.assertEqual(subprocess.run(check, cwd=self.folder, stderr=subprocess.DEVNULL).returncode, 1)
        daemon = self.run_to_end(os.path.join(SCENARIOS, "fix-bug.json"), "[scenario fix-bug] mend it")
        self.assertIn("apostrophe", daemon.finished)
        self.assertEqual(subprocess.run(check, cwd=self.folder, stderr=subprocess.DEVNULL).returncode, 0)
        self.assertEqual(daemon.plan[0][1], "done")
        self.assertEqual(len(daemon.records_of("turn")), 6)
        self.assertEqual([e["exit"] for e in self.results() if "exit" in e and "FAILED" in e["stderr"]], [1, 1])
        wait_until(lambda: len(self.gateway.turns) == 6, "six turns at the gateway")

    def test_every_tool(self):
        calls = [call("run", command="echo hi; echo oops >&2; exit 3", stdin="x", timeout_s=5),
                 call("run_script", interpreter="python3", script="print(6*7)"),
                 call("start", command="sleep 9"), call("poll", id=1, wait_s=0), call("send", id=1, text="x\n"),
                 call("kill", id=1), call("list_background"), call("write_file", path="a/b/c.sh", content="#!/bin/sh\n",
                                                                   mode="0755"),
                 call("append_file", path="a/b/c.sh", content="echo ü\n"), call("read_file", path="a/b/c.sh"),
                 call("read_file", path="a/b/c.sh", offset=10, limit=6),
                 call("edit_file", path="a/b/c.sh", old="echo ü", new="echo ok"), call("list_dir", path="a/b"),
                 call("find_files", path=".", pattern="*.sh"), call("search_text", path=".", pattern="echo (ok|no)"),
                 call("search_text", path=".", pattern="nowhere"), call("stat_path", path="a/b/c.sh"),
                 call("make_dir", path="-new"), call("copy_path", **{"from": "a", "to": "-copy"}),
                 call("move_path", **{"from": "-copy", "to": "moved"}), call("remove_path", path="-new"),
                 call("remove_path", path="moved", recursive=True), call("system_info"), call("screenshot"),
                 call("plan_add", text="one"), call("plan_update", id=1, status="doing"), call("plan_list"),
                 call("note", text="noted"), call("set_check", command="true", setup="")]
        daemon = self.run_to_end([turn(*calls), FINISH])
        got = self.results()
        by_name = {}
        for wanted, result in zip(calls, got):
            by_name.setdefault(wanted["name"], []).append(result)
        self.assertEqual(len(got), len(calls))
        run = by_name["run"][0]
        self.assertEqual((run["exit"], run["stdout"], run["stderr"], run["truncated"]), (3, "hi\n", "oops\n", False))
        self.assertEqual(by_name["run_script"][0]["stdout"], "42\n")
        self.assertEqual(by_name["poll"][0], {"running": True, "output": "tick\n"})
        self.assertEqual(by_name["list_background"][0]["commands"][0]["command"], "sleep 9")
        self.assertEqual(by_name["read_file"][0]["content"], "#!/bin/sh\necho ü\n")
        self.assertEqual(by_name["read_file"][1], {"content": "echo ", "size": 18, "next_offset": 15})
        self.assertEqual(by_name["edit_file"][0]["replaced"], 1)
        self.assertIn("c.sh", by_name["list_dir"][0]["stdout"])
        self.assertEqual(by_name["find_files"][0]["stdout"], "./a/b/c.sh\n")
        self.assertEqual(by_name["search_text"][0]["stdout"], "./a/b/c.sh:2:echo ok\n")
        self.assertEqual(by_name["search_text"][1]["message"], "Nothing matches")
        self.assertIn("mode 755", by_name["stat_path"][0]["stdout"])
        self.assertIn("cannot see", by_name["screenshot"][0]["error"])
        self.assertEqual(by_name["plan_list"][0]["plan"], [{"id": 1, "text": "one", "status": "doing"}])
        for name in ("make_dir", "copy_path", "move_path", "remove_path", "system_info"):
            for result in by_name[name]:
                self.assertEqual(result["exit"], 0, (name, result))
        self.assertEqual((daemon.notes, daemon.check, daemon.finished), (["noted"], ("true", ""), "all done"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a"])

    def test_hands_and_history(self):
        calls = [call("mouse_move", x=1, y=2), call("mouse_click", x=1, y=2, double=True), call("mouse_drag", x1=1, y1=2, x2=3, y2=4,
                                                                                                button="right"),
                 call("scroll", x=1, y=2, amount=-3), call("type_text", text="hi\n"), call("press_keys", keys="ctrl+c"),
                 call("wait", seconds=1), call("git_status"), call("git_diff"), call("git_diff", path="a/../b"),
                 call("git_diff", path="../other"), call("git_log", count=2)]
        daemon = self.run_to_end([turn(*calls), FINISH])
        got = self.results()
        self.assertEqual([arguments for method, arguments in daemon.calls if method.startswith("Mouse") or method == "Scroll"],
                         [(1, 2), (1, 2, "left", True), (1, 2, 3, 4, "right"), (1, 2, -3)])
        self.assertTrue(all("no desktop" in result["error"] for result in got[:4]))
        self.assertEqual(got[4:7], [{"ok": True}] * 3)
        self.assertIn(("TypeText", ("hi\n",)), daemon.calls)
        self.assertEqual(got[7], {"changes": [{"path": "a", "status": "modified", "added": 2}], "total": 7,
                                  "warnings": ["\"pipe\" was left out"]})
        self.assertEqual([(result["diff"], result["truncated"]) for result in got[8:10]], [("+\ufffd ", True), ("+\ufffd b", True)])
        self.assertIn("outside", got[10]["error"])
        self.assertEqual(got[11], {"commits": [{"commit": "ab", "subject": "first", "time": "1970-01-01T00:00:00Z"}] * 2})

    def test_system_tools_check_what_they_are_given(self):
        """What is refused never becomes a command."""
        bad = [call("install_packages", names=[name]) for name in
               ("", "x", "-y", "Gcc", "gcc-", "gcc;id", "gcc make", "gcc/sid", "gcc:", "gcc=", "a" * 201, "python3.*", "../x.deb")]
        bad += [call("install_packages", names=[]), call("install_packages", names=["gcc"] * 101)]
        bad += [call("service", name=name, action="status") for name in ("", "--all", "a b", "ssh*", "a;b", "x" * 256)]
        bad += [call("service", name="ssh", action="daemon-reexec"), call("read_log", unit="-b"), call("read_log", lines=0)]
        bad += [call("download", url=url, path="f")
                for url in ("file:///etc/passwd", "-o/x", "http://a b", "http://ü", "http://" + "a" * 9000)]
        daemon = self.run_to_end([turn(*bad[:30]), turn(*bad[30:]), FINISH])
        results = self.results()
        self.assertEqual(len(results), len(bad))
        for wanted, result in zip(bad, results):
            self.assertIn("error", result, wanted)
        self.assertNotIn("Exec", [method for method, _arguments in daemon.calls])

    def test_downloads(self):
        """A part that is there is gone on with; a server that cannot do that gives the whole; nothing half stands at the end."""
        content = os.urandom(300000)
        with Web(content) as web, Web(content, ranges=False) as plain:
            def part_of(url):
                ran = subprocess.run(["cksum"], input=url, capture_output=True, text=True, check=True)
                return ran.stdout.strip().replace(" ", "-")
            parts = os.path.join(self.work.path, "belljar-download")
            os.mkdir(parts, 0o700)
            for url in (web.url + "/a", plain.url + "/a"):
                with open(os.path.join(parts, part_of(url)), "wb") as file:
                    file.write(content[:100000])
            calls = [call("download", url=web.url + "/a", path="sub/went on"), call("download", url=web.url + "/a", path="new"),
                     call("download", url=plain.url + "/a", path="again"), call("download", url=web.url + "/none", path="none"),
                     call("download", url=web.url + "/cut", path="cut")]
            with unittest.mock.patch.dict(os.environ, TMPDIR=self.work.path):
                self.run_to_end([turn(*calls), FINISH])
        went_on, new, again, none, cut = self.results()
        for result, name in ((new, "new"), (went_on, "sub/went on"), (again, "again")):
            self.assertEqual(result.get("exit"), 0, result)
            self.assertIn(hashlib.sha256(content).hexdigest(), result["stdout"])
            with open(os.path.join(self.folder, name), "rb") as file:
                self.assertEqual(file.read(), content)
        self.assertIn("at byte 100000", went_on["stdout"])
        self.assertNotIn("at byte", again["stdout"])
        self.assertEqual([answer for answer in web.answers if answer[0] == "/a"], [("/a", 206, 200000), ("/a", 200, 300000)])
        self.assertIn("network none", none["error"])
        self.assertIn("404", none["error"])
        self.assertIn("error", cut)
        self.assertEqual(sorted(os.listdir(self.folder)), ["again", "new", "sub"])
        self.assertEqual(os.listdir(parts), [part_of(web.url + "/cut")])

    def test_files_that_are_no_text(self):
        with open(os.path.join(self.folder, "bin"), "wb") as file:
            file.write(bytes(range(256)) * 3)
        self.run_to_end([turn(call("read_file", path="bin"), call("run", command="head -c 300 /dev/urandom; printf 'a\\0b'"),
                              call("run", command="yes x | head -c 200000")), FINISH])
        read, run, long = self.results()
        self.assertIn("not UTF-8", read["note"])
        self.assertTrue(run["stdout"].endswith("a\ufffdb"))
        self.assertTrue(long["truncated"])
        self.assertLess(len(long["stdout"]), 13000)

    def test_edit_file_errors(self):
        self.work.file("project/f", "one\none\n")
        self.run_to_end([turn(call("edit_file", path="f", old="two", new="x"), call("edit_file", path="f", old="one", new="x"),
                              call("edit_file", path="none", old="a", new="b"), call("edit_file", path="f", old="", new="b"),
                              call("edit_file", path="f", old="one", new="two", all=True)), FINISH])
        errors = self.results()
        for result, text in zip(errors, ("does not stand", "2 times", "No such file", "not be empty")):
            self.assertIn(text, result["error"])
        self.assertEqual(errors[-1]["replaced"], 2)

    def test_timeout_says_so(self):
        self.run_to_end([turn(call("run", command="sleep 30", timeout_s=1)), FINISH])
        self.assertTrue(self.results()[0]["timed_out"])
        self.assertIn("1 s", self.results()[0]["message"])

    def test_screenshot_for_a_model_that_sees(self):
        self.run_to_end([turn(call("screenshot")), turn(call("screenshot")), FINISH],
                        options=["--capabilities", "tools,vision"], vision=GLib.Variant("b", True))
        messages = self.replay.chats()[-1]["messages"]
        self.assertEqual([m["images"] for m in messages if m["role"] == "user"], [0, 0, 1])

    def test_thinking(self):
        daemon = self.run_to_end([turn(call("system_info"), thinking="let me think", content="hm"), FINISH],
                                 options=["--capabilities", "tools,thinking"], think=GLib.Variant("b", True))
        self.assertEqual(daemon.records_of("turn")[0]["thinking"], "let me think")
        chats = self.replay.chats()
        self.assertTrue(all(c["think"] is True for c in chats))
        self.assertEqual([m["thinking"] for c in chats for m in c["messages"]], [0] * sum(len(c["messages"]) for c in chats))

    def test_think_and_tools_the_model_has_not(self):
        text = '<tool_call>\n{"name": "finish", "arguments": {"summary": "in words"}}\n</tool_call>'
        daemon = self.run_to_end([{"content": text}], options=["--capabilities", ""], think=GLib.Variant("b", True))
        self.assertEqual(daemon.finished, "in words")
        self.assertEqual(len(daemon.records_of("retry")), 2)
        last = self.replay.chats()[-1]
        self.assertEqual((last["tools"], last["think"]), (0, None))
        self.assertIn("- edit_file:", last["messages"][0]["text"])


class HabitsTest(AgentCase):
    """Models that do not do what they are asked to."""

    def test_unknown_tools_and_bad_arguments(self):
        raw = json.dumps({"message": {"role": "assistant", "content": "", "tool_calls": [
            {"function": {"name": "run", "arguments": "{\"command\": \"echo from a string\"}"}},
            {"function": {"name": "run", "arguments": "not json"}}, {"function": {"name": "run", "arguments": [1, 2]}},
            {"function": {"arguments": {}}}, "nonsense", {"function": {"name": "run", "arguments": {"command": "pwd",
                                                                                                    "colour": "red"}}},
            {"function": {"name": "poll", "arguments": {"id": "1"}}},
            {"function": {"name": "run", "arguments": {"command": ["ls"]}}},
            {"function": {"name": "plan_update", "arguments": {"id": 1, "status": "purple"}}},
            {"function": {"name": "run", "arguments": {"command": "x", "timeout_s": 99999}}}]}, "done": True}) + "\n"
        daemon = self.run_to_end([turn(call("fly", speed=9), call("run"), call("run", command=5, timeout_s="2")),
                                  {"raw": raw}, FINISH])
        first, second = self.results(1), self.results(2)[3:]
        self.assertIn("run_script", first[0]["error"])
        self.assertIn("“fly”", first[0]["error"])
        self.assertIn("“command”", first[1]["error"])
        self.assertEqual(first[2]["exit"], 127)
        self.assertEqual(second[0]["stdout"], "from a string\n")
        for i, text in ((1, "JSON object"), (2, "JSON object"), (3, "no tool's name"), (4, "JSON object"),
                        (6, "no background command"), (7, "type string"), (8, "not right"), (9, "not right")):
            self.assertIn(text, second[i]["error"])
        self.assertIn("colour", second[5]["ignored"])
        self.assertEqual(daemon.finished, "all done")
        self.assertGreaterEqual(len(daemon.records_of("tool-error")), 9)

    def test_a_hundred_calls(self):
        daemon = self.run_to_end([turn({**call("run", command="echo x >> count"), "times": 100}), FINISH])
        with open(os.path.join(self.folder, "count"), encoding="ascii") as file:
            self.assertEqual(len(file.readlines()), 32)
        self.assertEqual(sum("Only 32" in r.get("error", "") for r in self.results()), 68)
        self.assertEqual(daemon.finished, "all done")

    def test_five_megabytes_of_prose(self):
        daemon = self.start([{"fault": "flood", "bytes": 5 * 1024 * 1024}, FINISH])
        wait_until(lambda: daemon.records_of("turn") or daemon.process.poll() is not None, "the first turn")
        self.assertEqual(daemon.wait(), 0, daemon.errors)
        self.assertEqual(daemon.finished, "all done")
        self.assertTrue(daemon.records_of("turn")[0]["truncated"])
        wait_until(lambda: len(self.gateway.turns) == 2, "two turns")
        self.assertIn("agent", self.gateway.turns[0][1]["error"])
        self.assertLess(self.replay.chats()[1]["bytes"], 60000)

    @unittest.skipIf(is_sanitized(), "sizes say nothing under AddressSanitizer")
    def test_memory_stays_flat(self):
        daemon = self.start({"turns": [turn(call("run", command="true")), *[{"fault": "flood"}] * 20,
                                       {"fault": "hang"}]}, data=self.data_with(backoff_ms=1, nudges=50))
        wait_until(lambda: len(daemon.records_of("turn")) >= 3, "some floods")
        agent, gateway = rss_kib(daemon.process.pid), rss_kib(self.gateway.process.pid)
        wait_until(lambda: len(daemon.records_of("turn")) >= 21, "all floods")
        self.assertLess(rss_kib(daemon.process.pid) - agent, 8000)
        self.assertLess(rss_kib(self.gateway.process.pid) - gateway, 8000)

    def test_never_finishes_in_words(self):
        daemon = self.run_to_end({"turns": [{"content": "I am done, I believe."}], "repeat": True})
        self.assertEqual(daemon.finished, "I am done, I believe.")
        self.assertEqual(len(self.replay.chats()), 4)
        self.assertIn("did not call a tool", self.replay.chats()[-1]["messages"][-1]["text"])

    def test_empty_answers(self):
        daemon = self.run_to_end({"turns": [{"content": ""}], "repeat": True}, code=1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.Failed")
        self.assertIn("empty answers", daemon.failed[1])

    def test_never_finishes_with_calls(self):
        daemon = self.run_to_end({"turns": [turn(call("fly"))], "repeat": True}, code=1, steps=GLib.Variant("u", 12))
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.Limit")
        self.assertEqual(len(self.replay.chats()), 13)

    def test_textual_calls(self):
        shapes = ['I look.\n<tool_call>{"name": "run", "arguments": {"command": "echo tagged"}}</tool_call>',
                  'So:\n```json\n{"name": "run", "arguments": {"command": "echo fenced"}}\n```\nand then we see.',
                  '{"name": "run", "parameters": {"command": "echo bare"}}']
        daemon = self.run_to_end([*({"content": shape} for shape in shapes), FINISH])
        self.assertEqual([c[1][1] for c in daemon.calls if c[0] == "Exec"], ["echo tagged", "echo fenced", "echo bare"])
        self.assertEqual([r["tool"] for r in daemon.records_of("textual-call")], ["run"] * 3)

    def test_long_work_is_trimmed(self):
        turns = [turn(call("plan_add", text="remember me"))]
        turns += [turn(call("run", command=f"seq 1 2000; echo {i}")) for i in range(40)]
        daemon = self.run_to_end({"turns": [*turns, *[turn(call("run", command="seq 1 2000"))] * 40], "repeat": True},
                                 "the task stays", options=["--context", "8192"], context=GLib.Variant("u", 8192),
                                 steps=GLib.Variant("u", 60), code=1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.Limit")
        self.assertTrue(daemon.records_of("trim"))
        chats = self.replay.chats()
        self.assertTrue(all(c["status"] == 200 for c in chats))
        self.assertTrue(all("the task stays" in c["messages"][1]["text"] for c in chats))
        self.assertIn("remember me", chats[-1]["messages"][2]["text"])
        self.assertLess(max(c["bytes"] for c in chats), 8192 * 3.5 + 4000)


class TroubleTest(AgentCase):
    def test_faults_that_pass(self):
        for fault in ("http-500", "http-503", "drop", "hang", "hang-mid", "invalid-json", "error-line", "no-done", "garbage"):
            with self.subTest(fault=fault):
                daemon = self.run_to_end([{**FINISH, "fault": fault, "times": 2}], stall=1)
                self.assertEqual(daemon.finished, "all done")
                self.assertEqual([r["attempt"] for r in daemon.records_of("retry")], [1, 2])

    def test_faults_that_stay(self):
        for fault in ("http-500", "drop", "hang", "invalid-json", "redirect"):
            with self.subTest(fault=fault):
                daemon = self.run_to_end([{"fault": fault}], stall=1, code=1)
                self.assertEqual(daemon.failed[0], "org.belljar1.Error.ModelUnreachable")
                self.assertEqual(len(self.replay.chats()), 4)

    def test_the_agents_own_stall(self):
        daemon = self.run_to_end([{"fault": "hang"}], code=1, data=self.data_with(backoff_ms=1, stall=1, retries=1))
        self.assertIn("stalled", daemon.failed[1])

    def test_errors_that_will_not_pass(self):
        daemon = self.run_to_end([{"fault": "http-404", "content": "model not found"}], code=1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.ModelUnreachable")
        self.assertIn("model not found", daemon.failed[1])
        self.assertEqual(len(self.replay.chats()), 1)

    def test_model_server_gone(self):
        self.replay = Replay(self.work, [])
        self.gateway = Gateway(self.work, self.replay.url)
        self.addCleanup(self.gateway.close)
        self.replay.close()
        daemon = Daemon(self.gateway.open_session(), self.folder, "x", self.data_with(backoff_ms=1))
        self.addCleanup(daemon.close)
        self.assertEqual(daemon.wait(), 1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.ModelUnreachable")
        self.assertIn("does not answer", daemon.failed[1])

    def test_gateway_gone(self):
        daemon = self.start([turn(call("run", command="sleep 1")), FINISH])
        wait_until(lambda: any(c[0] == "Exec" for c in daemon.calls), "the first command")
        self.gateway.process.kill()
        self.gateway.process.wait()
        self.assertEqual(daemon.wait(), 1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.ModelUnreachable")

    def test_script_that_does_not_fit_fails_loudly(self):
        daemon = self.run_to_end([{**FINISH, "when": "an unlikely thing"}], code=1)
        self.assertIn("an unlikely thing", daemon.failed[1])

    def test_guest_unreachable(self):
        for times, code in ((3, 0), (4, 1)):
            with self.subTest(times=times):
                daemon = self.start([turn({**call("run", command="true"), "times": 4}), FINISH])
                daemon.fail_with["Exec"] = [VerbError("GuestUnreachable", "the machine is gone") for _ in range(times)]
                self.assertEqual(daemon.wait(), code)
                if code:
                    self.assertEqual(daemon.failed, ("org.belljar1.Error.GuestUnreachable", "the machine is gone"))
                else:
                    self.assertEqual([r.get("error") for r in self.results()], ["the machine is gone"] * 3 + [None])

    def test_limit_and_cancel_end_the_loop(self):
        for name in ("Limit", "Cancelled"):
            with self.subTest(name=name):
                daemon = self.start([turn({**call("run", command="true"), "times": 3}), FINISH])
                daemon.fail_with["Exec"] = [VerbError(name, "that is all")]
                self.assertEqual(daemon.wait(), 0)
                self.assertEqual((daemon.failed, daemon.finished), (None, None))
                self.assertEqual(sum(c[0] == "Exec" for c in daemon.calls), 1)

    def test_ends_with_the_daemon(self):
        for scenario in ([{"fault": "hang"}], [turn(call("run", command="sleep 20"))]):
            with self.subTest(scenario=scenario):
                daemon = self.start(scenario)
                wait_until(self.replay.chats, "the first request")
                daemon.connection.close_sync(None)
                self.assertEqual(daemon.wait(10), 0)

    def test_no_other_file_descriptors_and_no_task(self):
        daemon = self.start([{"fault": "hang"}])
        wait_until(self.replay.chats, "the first request")
        fds = {int(fd): os.readlink(f"/proc/{daemon.process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{daemon.process.pid}/fd")}
        inherited = {fd: path for fd, path in fds.items() if fd > 4 and not path.startswith(("anon_inode:", "socket:"))}
        self.assertEqual(inherited, {})
        daemon = self.start([FINISH], model=GLib.Variant("s", ""))
        self.assertEqual(daemon.wait(), 1)
        self.assertEqual(daemon.failed[0], "org.belljar1.Error.Invalid")


class DataTest(AgentCase):
    def check(self, folder):
        done = subprocess.run([os.path.join(BUILD, "agent", "belljar-agent"), "--check", "--data=" + folder],
                              capture_output=True, text=True, env={"LC_ALL": "C.UTF-8"})
        return done.returncode, done.stderr

    def change(self, name, function):
        folder = self.data_with()
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(function(text))
        return self.check(folder)

    def test_as_shipped(self):
        self.assertEqual(self.check(DATA), (0, ""))

    def test_broken(self):
        def edit(function):
            def change(text):
                value = json.loads(text)
                function(value["tools"])
                return json.dumps(value)
            return change

        for name, function, expected in (
                ("tools.json", lambda t: t[:-20], "JSON"),
                ("tools.json", edit(lambda tools: tools.pop(3)), "“poll” is not defined"),
                ("tools.json", edit(lambda tools: tools.append({"type": "function", "function": {
                    "name": "fly", "description": "x", "parameters": {"type": "object", "properties": {}, "required": []}}})),
                 "no code for the tool “fly”"),
                ("tools.json", edit(lambda tools: tools.append(tools[0])), "twice"),
                ("tools.json", edit(lambda tools: tools[0]["function"]["parameters"]["properties"]["cwd"].pop("type")), "cwd"),
                ("tools.json", edit(lambda tools: tools[0]["function"]["parameters"]["required"].append("x")), "required"),
                ("tools.json", edit(lambda tools: tools[0]["function"].pop("description")), "run: the description"),
                ("agent.ini", lambda t: t.replace("nudges=3", "nudges=many"), "nudges"),
                ("agent.ini", lambda t: t.replace("nudges=3", ""), "nudges"),
                ("agent.ini", lambda t: t + "colour=red\n", "colour"),
                ("agent.ini", lambda t: "[loop", "agent.ini"),
                ("system.md", lambda t: t + "{{planet}}", "planet"),
                ("system.md", lambda t: t + "{{folder", "folder"),
                ("textual-tools.md", lambda t: t + "{{folder}}", "folder")):
            with self.subTest(name=name, expected=expected):
                code, text = self.change(name, function)
                self.assertEqual(code, 1)
                self.assertIn(expected, text)


if __name__ == "__main__":
    unittest.main()
