# SPDX-License-Identifier: GPL-3.0-or-later
"""belljar-gateway: the only path to the model, against the scripted model over real HTTP."""

import hashlib
import http.server
import json
import os
import socket
import threading
import unittest

from agent_parts import DEADLINE, Gateway, Replay, UnixHttp, Work, ask, chat_body, is_sanitized, rss_kib, wait_until

from gi.repository import Gio, GLib


def lines(data):
    return [json.loads(line) for line in data.decode().split("\n") if line]


class GatewayCase(unittest.TestCase):
    def setUp(self):
        self.work = Work()
        self.addCleanup(self.work.close)

    def start(self, scenario, *options, allow=("replay",), **configuration):
        self.replay = Replay(self.work, scenario, *options)
        self.addCleanup(self.replay.close)
        self.gateway = Gateway(self.work, self.replay.url, allow, **configuration)
        self.addCleanup(self.gateway.close)
        return self.gateway.open_session()

    def last_turn(self, count=1):
        wait_until(lambda: len(self.gateway.turns) >= count, "TurnFinished")
        return self.gateway.turns[-1][1]


class AllowedTest(GatewayCase):
    def test_chat_streams_and_is_recorded(self):
        path = self.start([{"content": "Hello there, this is an answer.", "thinking": "hm"}])
        status, data = ask(path, "POST", "/api/chat", chat_body(options={"num_gpu": 99, "seed": 7}, keep_alive=0))
        self.assertEqual(status, 200)
        answer = lines(data)
        self.assertEqual("".join(a["message"].get("content", "") for a in answer), "Hello there, this is an answer.")
        self.assertTrue(answer[-1]["done"])
        turn = self.last_turn()
        self.assertEqual((turn["turn"], turn["status"], turn["error"], turn["path"]), (1, 200, "", "/api/chat"))
        self.assertEqual(turn["response-bytes"], len(data))
        self.assertEqual(turn["response-sha256"], hashlib.sha256(data).hexdigest())
        seen = self.replay.chats()[0]
        self.assertEqual(turn["request-bytes"], seen["bytes"])
        self.assertEqual(seen["num_ctx"], 32768)
        self.assertNotIn("keep_alive", seen["keys"])

    def test_num_ctx(self):
        for context, asked, expected in ((131072, None, 32768), (4096, None, 4096), (131072, 2048, 2048),
                                         (4096, 999999, 4096)):
            with self.subTest(context=context, asked=asked):
                path = self.start([{"content": "x"}], "--context", str(context))
                body = chat_body(options={"num_ctx": asked}) if asked else chat_body()
                self.assertEqual(ask(path, "POST", "/api/chat", body)[0], 200)
                self.assertEqual(self.replay.chats()[-1]["num_ctx"], expected)

    def test_other_requests(self):
        path = self.start([], "--model", "replay", "--model", "secret-model")
        self.assertIn("belljar-replay", json.loads(ask(path, "GET", "/api/version")[1])["version"])
        tags = json.loads(ask(path, "GET", "/api/tags")[1])
        self.assertEqual([m["name"] for m in tags["models"]], ["replay"])
        self.assertIn("tools", json.loads(ask(path, "POST", "/api/show", {"model": "replay:latest"})[1])["capabilities"])
        self.assertEqual(self.gateway.turns, [])

    def test_probe(self):
        self.start([], "--capabilities", "tools,thinking", "--context", "8192")
        info = self.gateway.probe("replay")
        self.assertEqual({k: info[k] for k in ("reachable", "found", "tools", "vision", "thinking", "context")},
                         {"reachable": True, "found": True, "tools": True, "vision": False, "thinking": True,
                          "context": 8192})
        info = self.gateway.probe("nothing")
        self.assertTrue(info["reachable"])
        self.assertFalse(info["found"])
        self.assertIn("nothing", info["error"])
        self.assertEqual(self.gateway.probe("")["reachable"], True)
        self.replay.close()
        self.assertFalse(self.gateway.probe("replay")["reachable"])

    def test_many_probes_are_one(self):
        server = SlowServer()
        self.addCleanup(server.close)
        self.gateway = Gateway(self.work, server.url)
        self.addCleanup(self.gateway.close)
        answers = []
        for _ in range(400):
            self.gateway.connection.call(
                None, "/org/belljar1/gateway", "org.belljar1.Gateway", "Probe", GLib.Variant("(s)", ("replay",)), None,
                Gio.DBusCallFlags.NONE, DEADLINE * 1000, None,
                lambda connection, result: answers.append(connection.call_finish(result).unpack()[0]))
        # Calls are taken in their order: when this one is answered, all of those have been taken.
        self.assertRaises(GLib.Error, self.gateway.close_session, "aaaaaaaa")
        server.release.set()
        wait_until(lambda: len(answers) == 400, "all answers")
        self.assertTrue(all(answer["reachable"] for answer in answers))
        self.assertEqual(server.paths, ["/api/version", "/api/show"])
        self.assertTrue(self.gateway.probe("replay")["found"])
        self.assertEqual(len(server.paths), 4)


class SlowServer:
    """A model server that counts what it is asked, and answers when it is released."""

    def __init__(self):
        self.paths = paths = []
        self.release = release = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                paths.append(self.path)
                release.wait(DEADLINE)
                body = b'{"version": "1", "capabilities": ["completion", "tools"], "model_info": {}}'
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


class StayingServer(SlowServer):
    """A model server that answers and then does not end its answer."""

    def __init__(self, answer):
        super().__init__()
        release, data = self.release, "".join(json.dumps(line) + "\n" for line in answer).encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                if self.path != "/api/chat":
                    self.end_headers()
                    self.wfile.write(b'{"capabilities": ["completion", "tools"], "model_info": {}}')
                    return
                self.send_header("Content-Type", "application/x-ndjson")
                self.end_headers()
                self.wfile.write(data)
                self.wfile.flush()
                release.wait(DEADLINE)

            def log_message(self, *_):
                pass

        self.server.RequestHandlerClass = Handler


class RefusedTest(GatewayCase):
    def test_paths_models_and_bodies(self):
        path = self.start([{"content": "x"}], "--model", "replay", "--model", "other", allow=("replay", "other"),
                          body_bytes=GLib.Variant("t", 100000))
        for method, url, body, status in (
                ("POST", "/api/generate", chat_body(), 403), ("POST", "/api/pull", {"model": "x"}, 403),
                ("DELETE", "/api/delete", {"model": "replay"}, 403), ("GET", "/api/chat", None, 403),
                ("GET", "/api/ps", None, 403), ("GET", "/", None, 403), ("POST", "/api/chat/", chat_body(), 403),
                ("GET", "/api/../api/tags/x", None, 403), ("GET", "//api/version", None, 403),
                ("POST", "/api/chat", {**chat_body(), "model": "other"}, 403),
                ("POST", "/api/show", {"name": "other"}, 403), ("POST", "/api/chat", b"{nonsense", 400),
                ("POST", "/api/chat", {"messages": []}, 400), ("POST", "/api/chat", b"[" * 90000, 400),
                ("POST", "/api/chat", b"", 400), ("POST", "/api/chat", {**chat_body("x" * 200000)}, 403)):
            with self.subTest(method=method, url=url, body=str(body)[:60]):
                got, data = ask(path, method, url, body)
                self.assertEqual(got, status, data)
                self.assertTrue(json.loads(data)["error"])
        self.assertEqual([e for e in self.replay.entries() if e["path"] != "/api/show"], [])

    def test_chunked_body_over_the_cap(self):
        path = self.start([{"content": "x"}], body_bytes=GLib.Variant("t", 100000))
        connection = UnixHttp(path)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/chat", (b"x" * 50000 for _ in range(10)), {"Transfer-Encoding": "chunked"},
                           encode_chunked=True)
        answer = connection.getresponse()
        self.assertEqual((answer.status, json.loads(answer.read())["code"]), (403, "Limit"))

    def test_sessions_and_options(self):
        self.start([])
        for call, text in ((lambda: self.gateway.open_session("forbidden"), "allow"),
                           (lambda: self.gateway.open_session(name="../../etc"), "id"),
                           (lambda: self.gateway.close_session("nosuchab"), "no such"),
                           (lambda: self.gateway.configure(url=GLib.Variant("s", "ftp://x")), "http"),
                           (lambda: self.gateway.configure(url=GLib.Variant("s", "http://me:pass@x")), "user name"),
                           (lambda: self.gateway.configure(colour=GLib.Variant("s", "red")), "colour"),
                           (lambda: self.gateway.configure(stall=GLib.Variant("s", "3")), "stall")):
            with self.subTest(text=text), self.assertRaises(GLib.Error) as caught:
                call()
            self.assertIn(text, caught.exception.message)
            self.assertIn("org.belljar1.Error.", caught.exception.message)
            self.assertNotIn("pass@", caught.exception.message)

    def test_too_many_at_once(self):
        path = self.start([{"fault": "hang"}])
        held = []
        for _ in range(4):
            held.append(UnixHttp(path))
            held[-1].request("POST", "/api/chat", json.dumps(chat_body()))
        wait_until(lambda: len(self.replay.chats()) == 4, "four requests to arrive")
        self.assertEqual(ask(path, "GET", "/api/version")[0], 429)
        for connection in held:
            connection.close()
        wait_until(lambda: ask(path, "GET", "/api/version")[0] == 200, "the held requests to be given up")


class TroubleTest(GatewayCase):
    def test_upstream_down(self):
        path = self.start([])
        self.replay.close()
        for method, url, body in (("POST", "/api/chat", chat_body()), ("GET", "/api/version", None),
                                  ("GET", "/api/tags", None), ("POST", "/api/show", {"model": "replay"})):
            with self.subTest(url=url):
                status, data = ask(path, method, url, body)
                self.assertEqual((status, json.loads(data)["code"]), (502, "ModelUnreachable"))

    def test_upstream_down_after_it_was_up(self):
        path = self.start([{"content": "x"}])
        self.assertEqual(ask(path, "POST", "/api/chat", chat_body())[0], 200)
        self.replay.close()
        status, data = ask(path, "POST", "/api/chat", chat_body())
        self.assertEqual((status, json.loads(data)["code"]), (502, "ModelUnreachable"))
        turn = self.last_turn(2)
        self.assertEqual(turn["status"], 502)
        self.assertIn("does not answer", turn["error"])

    def test_errors_of_the_server_come_through(self):
        path = self.start([{"fault": "http-500", "content": "out of memory"}])
        status, data = ask(path, "POST", "/api/chat", chat_body())
        self.assertEqual((status, json.loads(data)["error"]), (500, "out of memory"))
        self.assertIn("500", self.last_turn()["error"])

    def test_redirect_is_not_followed(self):
        path = self.start([{"fault": "redirect"}])
        status, data = ask(path, "POST", "/api/chat", chat_body())
        self.assertEqual(status, 502)
        self.assertIn("redirect", json.loads(data)["error"])

    def test_hang(self):
        path = self.start([{"fault": "hang"}], stall=GLib.Variant("u", 1))
        status, data = ask(path, "POST", "/api/chat", chat_body())
        self.assertEqual((status, json.loads(data)["code"]), (504, "ModelUnreachable"))
        self.assertIn("nothing for 1 s", self.last_turn()["error"])

    def test_broken_streams_end_with_an_error_line(self):
        for fault in ("drop", "hang-mid"):
            with self.subTest(fault=fault):
                path = self.start([{"fault": fault}], stall=GLib.Variant("u", 1))
                status, data = ask(path, "POST", "/api/chat", chat_body())
                self.assertEqual(status, 200)
                last = json.loads(data.decode().strip().split("\n")[-1])
                self.assertEqual(last["code"], "ModelUnreachable")
                self.assertTrue(self.last_turn()["error"])

    def test_agent_that_leaves_ends_the_upstream(self):
        for turn in ({"fault": "hang"}, {"fault": "hang-mid"}, {"fault": "endless"}):
            with self.subTest(turn=turn):
                path = self.start([turn])
                connection = UnixHttp(path)
                connection.request("POST", "/api/chat", json.dumps(chat_body()))
                wait_until(self.replay.chats, "the request to arrive")
                connection.sock.close()
                connection.close()
                self.assertIn("agent", self.last_turn()["error"])

    def test_the_last_line_ends_a_turn(self):
        """A server that stays after the last line keeps nobody waiting; what only looks like a last line is none."""
        server = StayingServer([{"message": {"tool_calls": [{"function": {"name": "x", "arguments": {"done": True}}}]},
                                 "done": False}, {"message": {"content": ""}, "done": True, "eval_count": 3}])
        self.addCleanup(server.close)
        self.gateway = Gateway(self.work, server.url)
        self.addCleanup(self.gateway.close)
        path = self.gateway.open_session()
        for count in range(1, 6):
            status, data = ask(path, "POST", "/api/chat", chat_body())
            self.assertEqual((status, len(lines(data))), (200, 2))
            turn = self.last_turn(count)
            self.assertEqual((turn["status"], turn["error"], turn["response-bytes"]), (200, "", len(data)))
            self.assertEqual(turn["response-sha256"], hashlib.sha256(data).hexdigest())

    def test_agent_that_leaves_after_a_long_last_line(self):
        """The last line is longer than what the gateway keeps of it: the turn ends when the agent goes, and it was answered."""
        server = StayingServer([{"message": {"content": "x" * 8000}, "done": True}])
        self.addCleanup(server.close)
        self.gateway = Gateway(self.work, server.url)
        self.addCleanup(self.gateway.close)
        connection = UnixHttp(self.gateway.open_session())
        connection.request("POST", "/api/chat", json.dumps(chat_body()))
        response = connection.getresponse()
        response.fp.read(8000)
        self.assertEqual(self.gateway.turns, [])
        connection.sock.close()
        response.close()
        connection.close()
        turn = self.last_turn()
        self.assertEqual((turn["status"], turn["error"]), (200, ""))

    @unittest.skipIf(is_sanitized(), "sizes say nothing under AddressSanitizer")
    def test_agent_that_does_not_read_is_given_up_and_memory_stays_flat(self):
        path = self.start([{"fault": "endless"}], stall=GLib.Variant("u", 2))
        before = rss_kib(self.gateway.process.pid)
        connection = UnixHttp(path)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/chat", json.dumps(chat_body()))
        self.assertIn("took nothing", self.last_turn()["error"])
        self.assertLess(rss_kib(self.gateway.process.pid) - before, 6000)

    @unittest.skipIf(is_sanitized(), "sizes say nothing under AddressSanitizer")
    def test_flood_keeps_memory_flat(self):
        path = self.start([{"fault": "flood", "bytes": 50 * 1024 * 1024}])
        ask(path, "GET", "/api/version")
        before = rss_kib(self.gateway.process.pid)
        status, data = ask(path, "POST", "/api/chat", chat_body())
        self.assertEqual(status, 200)
        self.assertGreater(len(data), 50 * 1024 * 1024)
        self.assertLess(rss_kib(self.gateway.process.pid) - before, 6000)

    def test_sessions_do_not_disturb_each_other(self):
        path = self.start({"turns": [{"content": "quick"}]})
        hanging = self.work.file("hang.json", {"turns": [{"fault": "hang"}]})
        self.replay.close()
        self.replay = Replay(self.work, os.path.dirname(hanging))
        self.addCleanup(self.replay.close)
        self.gateway.configure(url=GLib.Variant("s", self.replay.url), allow=GLib.Variant("as", ["replay"]))
        slow, path = self.gateway.open_session(), self.gateway.open_session()
        held = [UnixHttp(slow) for _ in range(4)]
        for connection in held:
            self.addCleanup(connection.close)
            connection.request("POST", "/api/chat", json.dumps(chat_body("[scenario hang]")))
        results = []
        threads = [threading.Thread(target=lambda: results.append(ask(path, "POST", "/api/chat", chat_body())[0]))
                   for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        self.assertEqual(results, [200, 200, 200])

    def test_closed_session_is_gone(self):
        path = self.start([{"fault": "hang"}])
        connection = UnixHttp(path)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/chat", json.dumps(chat_body()))
        wait_until(self.replay.chats, "the request to arrive")
        self.gateway.close_session(os.path.basename(path)[:-5])
        self.assertIn("over", self.last_turn()["error"])
        with self.assertRaises(OSError):
            ask(path, "GET", "/api/version")

    def test_garbage_on_the_socket(self):
        path = self.start([])
        for junk in (b"\0" * 1000, b"GET\r\n\r\n", b"POST /api/chat HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                     b"GET /" + b"a" * 200000):
            with self.subTest(junk=junk[:20]), socket.socket(socket.AF_UNIX) as raw:
                raw.connect(path)
                raw.settimeout(DEADLINE)
                try:
                    raw.sendall(junk)
                    raw.shutdown(socket.SHUT_WR)
                    while raw.recv(65536):
                        pass
                except ConnectionError:
                    pass
        self.assertEqual(ask(path, "GET", "/api/version")[0], 200)

    def test_ends_with_its_daemon(self):
        path = self.start([{"fault": "hang"}])
        connection = UnixHttp(path)
        self.addCleanup(connection.close)
        connection.request("POST", "/api/chat", json.dumps(chat_body()))
        wait_until(self.replay.chats, "the request to arrive")
        self.gateway.connection.close_sync(None)
        self.assertEqual(self.gateway.process.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
