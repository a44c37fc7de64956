/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-answer.h"
#include "bj-guest-request.h"

#include <fcntl.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* belljar-guest-run as a plain program on this host: it is ordinary Linux code. */

static char *dir;

typedef struct
{
  GBytes *output; /* (owned) */
  BjGuestAnswer answer;
} Run;

static void
clear (Run *run)
{
  g_clear_pointer (&run->output, g_bytes_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, clear)

static void
call (const char *mode, BjGuestRequest *request, const char *input, Run *run)
{
  g_autoptr(GBytes) rest = input ? g_bytes_new (input, strlen (input)) : NULL;
  g_autoptr(GBytes) bytes = NULL;
  g_autoptr(GSubprocess) process = NULL;
  g_autoptr(GError) error = NULL;

  bj_guest_request_add (request, "dir", dir);
  bytes = bj_guest_request_finish (request, rest);
  process = g_subprocess_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error,
                              g_getenv ("BJ_TEST_RUN"), mode, NULL);
  g_assert_no_error (error);
  g_subprocess_communicate (process, bytes, NULL, &run->output, NULL, &error);
  g_assert_no_error (error);
  bj_guest_answer_parse (g_bytes_get_data (run->output, NULL), g_bytes_get_size (run->output), &run->answer, &error);
  g_assert_no_error (error);
}

static void
run_sh (const char *script, guint timeout, guint cap, const char *input, Run *run)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();

  bj_guest_request_add (request, "argv", "/bin/sh");
  bj_guest_request_add (request, "argv", "-c");
  bj_guest_request_add (request, "argv", script);
  bj_guest_request_add_number (request, "timeout", timeout);
  bj_guest_request_add_number (request, "cap", cap);
  bj_guest_request_add (request, "input", input ? "1" : "0");
  call ("exec", request, input, run);
}

static char *
dup_text (const Run *run, guint first, guint64 total)
{
  g_autoptr(GBytes) bytes = bj_guest_answer_dup_stream (&run->answer, first, total);

  return g_bytes_get_size (bytes) == 0 ? g_strdup ("") : g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
}

typedef struct
{
  const char *script;
  const char *input;
  const char *out;
  const char *err;
  int exit;
  int signal;
} Case;

static const Case cases[] = {
  { "echo out; echo err >&2; exit 3", NULL, "out\n", "err\n", 3, 0 },
  { "cat; cat", "input", "input", "", 0, 0 },
  { "cat", NULL, "", "", 0, 0 },
  { "kill -9 $$", NULL, "", "", -1, 9 },
  { "exec >&- 2>&-; sleep 0.3", NULL, "", "", 0, 0 },
  { "printf 'a\\0b\\377'", NULL, "a", "", 0, 0 },
};

static void
test_table (void)
{
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    {
      g_auto(Run) run = { 0 };
      g_autofree char *out = NULL;
      g_autofree char *err = NULL;

      g_test_message ("%s", cases[i].script);
      run_sh (cases[i].script, 20, 1000, cases[i].input, &run);
      out = dup_text (&run, 0, run.answer.out_total);
      err = dup_text (&run, 2, run.answer.err_total);
      g_assert_cmpstr (out, ==, cases[i].out);
      g_assert_cmpstr (err, ==, cases[i].err);
      g_assert_cmpint (run.answer.exit, ==, cases[i].exit);
      g_assert_cmpint (run.answer.signal, ==, cases[i].signal);
      g_assert_cmpuint (run.answer.flags, ==, 0);
    }
}

/* Head and tail of every cap add up to what a plain program would cut out. */
static void
test_caps (void)
{
  static const guint caps[] = { 0, 1, 2, 3, 99, 1000, 3892, 3893, 3894, 65536 };
  g_autoptr(GString) text = g_string_new (NULL);
  const char *whole;

  for (int i = 1; i <= 1000; i++)
    g_string_append_printf (text, "%d\n", i);
  whole = text->str;
  for (guint i = 0; i < G_N_ELEMENTS (caps); i++)
    {
      g_auto(Run) run = { 0 };
      g_autofree char *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, whole, -1);
      gsize size = strlen (whole);
      gsize kept = MIN (size, caps[i]);
      const BjGuestAnswer *a = &run.answer;

      run_sh ("seq 1000", 20, caps[i], NULL, &run);
      g_assert_cmpuint (a->out_total, ==, size);
      g_assert_cmpuint (a->lengths[0] + a->lengths[1], ==, kept);
      g_assert_cmpint (memcmp (a->pieces[0], whole, a->lengths[0]), ==, 0);
      g_assert_cmpint (memcmp (a->pieces[1], whole + size - a->lengths[1], a->lengths[1]), ==, 0);
      for (int k = 0; k < 32; k++)
        g_assert_cmpint (a->out_sha256[k] >> 4, ==, g_ascii_xdigit_value (sum[2 * k]));
    }
}

/* How many processes were started as "sleep MARK". */
static guint
count_marked (const char *mark)
{
  g_autoptr(GDir) proc = g_dir_open ("/proc", 0, NULL);
  const char *name;
  guint n = 0;

  while ((name = g_dir_read_name (proc)) != NULL)
    {
      g_autofree char *path = g_build_filename ("/proc", name, "cmdline", NULL);
      g_autofree char *text = NULL;
      gsize size = 0;

      if (g_ascii_isdigit (*name) && g_file_get_contents (path, &text, &size, NULL) && size > strlen ("sleep") + 1
          && g_str_equal (text, "sleep") && g_str_equal (text + strlen ("sleep") + 1, mark))
        n++;
    }
  return n;
}

static void
test_timeout (void)
{
  static const char *const scripts[] = {
    "sleep 98761",
    "setsid sleep 98761 & (setsid sleep 98761 &); sleep 98761",
    "trap '' TERM; sleep 98761; sleep 98761",
    "kill -STOP 0; sleep 98761",
    "exec >&- 2>&-; sleep 98761",
    "(trap '' TERM HUP; setsid sh -c 'while :; do sleep 98761; done' &) ; while :; do :; done",
  };

  for (guint i = 0; i < G_N_ELEMENTS (scripts); i++)
    {
      g_auto(Run) run = { 0 };

      g_test_message ("%s", scripts[i]);
      run_sh (scripts[i], 1, 100, NULL, &run);
      g_assert_cmpuint (run.answer.flags, ==, BJ_RUN_TIMED_OUT);
      g_assert_cmpint (run.answer.exit, ==, -1);
      g_assert_cmpint (run.answer.signal, !=, 0);
      g_assert_cmpuint (count_marked ("98761"), ==, 0);
    }
}

static void
test_background_holds_pipe (void)
{
  g_autofree char *done = g_build_filename (dir, "done", NULL);
  g_autofree char *script = g_strdup_printf ("(sleep 1; echo late; echo ok >%s) & echo first", done);
  gint64 deadline = g_get_monotonic_time () + 20 * G_USEC_PER_SEC;
  g_auto(Run) run = { 0 };
  g_autofree char *out = NULL;

  run_sh (script, 20, 100, NULL, &run);
  out = dup_text (&run, 0, run.answer.out_total);
  g_assert_cmpstr (out, ==, "first\n");
  g_assert_cmpint (run.answer.exit, ==, 0);
  /* It lives on and can still print. */
  while (!g_file_test (done, G_FILE_TEST_EXISTS) && g_get_monotonic_time () < deadline)
    g_usleep (20000);
  g_assert_true (g_file_test (done, G_FILE_TEST_EXISTS));
  g_unlink (done);
}

static guint
start (const char *script)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_auto(Run) run = { 0 };

  bj_guest_request_add (request, "argv", "/bin/sh");
  bj_guest_request_add (request, "argv", "-c");
  bj_guest_request_add (request, "argv", script);
  call ("start", request, NULL, &run);
  g_assert_cmpuint (run.answer.flags, ==, BJ_RUN_RUNNING);
  return run.answer.id;
}

static void
ask (const char *mode, guint id, guint wait, const char *input, Run *run)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();

  bj_guest_request_add_number (request, "id", id);
  bj_guest_request_add_number (request, "wait", wait);
  call (mode, request, input, run);
}

static void
test_background (void)
{
  guint first = start ("echo up; while read x; do echo got $x; done");
  guint second = start ("exit 5");
  g_autoptr(GString) seen = g_string_new (NULL);
  g_auto(Run) sent = { 0 };
  g_auto(Run) ended = { 0 };
  g_auto(Run) killed = { 0 };
  g_auto(Run) unknown = { 0 };

  g_assert_cmpuint (first, !=, second);
  ask ("send", first, 0, "one\n", &sent);
  g_assert_cmpuint (sent.answer.out_total, ==, 4);
  for (int i = 0; i < 20 && strstr (seen->str, "one") == NULL; i++)
    {
      g_auto(Run) poll = { 0 };

      ask ("poll", first, 1, NULL, &poll);
      g_assert_cmpuint (poll.answer.flags, ==, BJ_RUN_RUNNING);
      g_string_append_len (seen, (const char *) poll.answer.pieces[0], (gssize) poll.answer.lengths[0]);
    }
  g_assert_cmpstr (seen->str, ==, "up\ngot one\n");
  ask ("poll", second, 10, NULL, &ended);
  g_assert_cmpuint (ended.answer.flags, ==, 0);
  g_assert_cmpint (ended.answer.exit, ==, 5);
  ask ("kill", first, 0, NULL, &killed);
  g_assert_cmpuint (killed.answer.flags & BJ_RUN_RUNNING, ==, 0);
  g_assert_cmpint (killed.answer.signal, ==, 15);
  ask ("poll", 1000, 0, NULL, &unknown);
  g_assert_cmpuint (unknown.answer.flags, ==, BJ_RUN_UNKNOWN);
}

/* 3 MB into a ring of 1 MiB: the newest is kept, and the sum is right. */
static void
test_ring (void)
{
  guint id = start ("head -c 3000000 /dev/zero | tr '\\0' x; printf END");
  guint64 got = 0;
  guint64 dropped = 0;
  char end[4] = "";
  guint32 flags = BJ_RUN_RUNNING;

  g_usleep (G_USEC_PER_SEC / 2);
  for (int i = 0; i < 100 && flags != 0; i++)
    {
      g_auto(Run) poll = { 0 };
      gsize n;

      ask ("poll", id, 1, NULL, &poll);
      n = poll.answer.lengths[0];
      got += n;
      dropped += poll.answer.dropped;
      flags = poll.answer.flags;
      if (n >= 3)
        memcpy (end, poll.answer.pieces[0] + n - 3, 3);
    }
  g_assert_cmpuint (got + dropped, ==, 3000003);
  g_assert_cmpstr (end, ==, "END");
}

static void
test_files (void)
{
  g_autofree char *path = g_build_filename (dir, "file", NULL);
  g_autoptr(BjGuestRequest) write = bj_guest_request_new ();
  g_autoptr(BjGuestRequest) read = bj_guest_request_new ();
  g_autoptr(BjGuestRequest) folder = bj_guest_request_new ();
  g_auto(Run) written = { 0 };
  g_auto(Run) got = { 0 };
  g_auto(Run) refused = { 0 };

  bj_guest_request_add (write, "path", path);
  bj_guest_request_add_number (write, "mode", 0600);
  call ("write", write, "hello", &written);
  g_assert_cmpint (written.answer.exit, ==, 0);
  bj_guest_request_add (read, "path", path);
  bj_guest_request_add_number (read, "offset", 1);
  bj_guest_request_add_number (read, "cap", 3);
  call ("read", read, NULL, &got);
  g_assert_cmpuint (got.answer.out_total, ==, 5);
  g_assert_cmpmem (got.answer.pieces[0], (int) got.answer.lengths[0], "ell", 3);
  bj_guest_request_add (folder, "path", dir);
  call ("read", folder, NULL, &refused);
  g_assert_cmpint (refused.answer.exit, ==, 21);
}

/* Output flows as it comes: a reader that waits stops the command, and a stream that is closed ends it. */
static void
test_stream (void)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();
  g_autoptr(GBytes) bytes = NULL;
  g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDIN_PIPE
                                                                       | G_SUBPROCESS_FLAGS_STDOUT_PIPE);
  g_autoptr(GSubprocess) process = NULL;
  g_autoptr(GBytes) output = NULL;
  g_autofree guint8 *buffer = g_malloc (1 << 20);
  BjGuestAnswer answer;
  guint64 total = 0;
  gssize n;
  int out[2];
  int err[2];

  g_assert_cmpint (pipe2 (out, O_CLOEXEC) | pipe2 (err, O_CLOEXEC), ==, 0);
  g_subprocess_launcher_take_fd (launcher, out[1], BJ_RUN_STREAM_OUT);
  g_subprocess_launcher_take_fd (launcher, err[1], BJ_RUN_STREAM_ERR);
  bj_guest_request_add (request, "argv", "/bin/sh");
  bj_guest_request_add (request, "argv", "-c");
  bj_guest_request_add (request, "argv", "echo e >&2; head -c 4000000 /dev/zero; exec yes");
  bytes = bj_guest_request_finish (request, NULL);
  process = g_subprocess_launcher_spawn (launcher, NULL, g_getenv ("BJ_TEST_RUN"), "stream", NULL);
  g_subprocess_launcher_close (launcher);
  g_output_stream_write_all (g_subprocess_get_stdin_pipe (process), g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes),
                             NULL, NULL, NULL);
  g_assert_cmpint (read (err[0], buffer, 10), ==, 2);
  while (total < 4000000 && (n = read (out[0], buffer, 1 << 20)) > 0)
    total += (guint64) n;
  g_assert_cmpuint (total, >=, 4000000);
  close (out[0]);
  g_assert_cmpint (read (err[0], buffer, 10), ==, 0);
  close (err[0]);
  output = g_input_stream_read_bytes (g_subprocess_get_stdout_pipe (process), 4096, NULL, NULL);
  g_assert_true (bj_guest_answer_parse (g_bytes_get_data (output, NULL), g_bytes_get_size (output), &answer, NULL));
  g_assert_cmpuint (answer.out_total, >=, total);
  g_assert_cmpuint (answer.err_total, ==, 2);
  g_assert_cmpint (answer.signal, ==, SIGPIPE);
}

static void
test_malformed (void)
{
  static const struct
  {
    const char *data;
    gsize size;
  } bad[] = {
    { "", 0 },
    { "BJRQ", 4 },
    { "BJRQ0002\0\0\0\0", 12 },
    { "BJRQ0001\377\377\377\377", 12 },
    { "BJRQ0001\4\0\0\0argv", 16 },
    { "BJRQ0001\5\0\0\0argv\0", 17 },
    { "BJRQ0001\12\0\0\0unknown=1\0", 22 },
    { "BJRQ0001\13\0\0\0timeout=-1\0", 23 },
    { "BJRQ0001\12\0\0\0timeout=0\0", 22 },
  };

  for (guint i = 0; i < G_N_ELEMENTS (bad); i++)
    {
      g_autoptr(GBytes) bytes = g_bytes_new_static (bad[i].data, bad[i].size);
      g_autoptr(GBytes) output = NULL;
      g_autoptr(GSubprocess) process = g_subprocess_new (
          G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, NULL,
          g_getenv ("BJ_TEST_RUN"), "exec", NULL);

      g_subprocess_communicate (process, bytes, NULL, &output, NULL, NULL);
      g_assert_cmpint (g_subprocess_get_exit_status (process), ==, 2);
      g_assert_cmpuint (g_bytes_get_size (output), ==, 0);
    }
}

int
main (int argc, char **argv)
{
  int status;

  g_test_init (&argc, &argv, NULL);
  /* tmpfs, as in the guest: the window is given back there. */
  dir = g_strdup ("/dev/shm/bj-run-XXXXXX");
  g_assert_nonnull (g_mkdtemp (dir));
  g_test_add_func ("/guest-run/table", test_table);
  g_test_add_func ("/guest-run/caps", test_caps);
  g_test_add_func ("/guest-run/timeout", test_timeout);
  g_test_add_func ("/guest-run/background-holds-pipe", test_background_holds_pipe);
  g_test_add_func ("/guest-run/background", test_background);
  g_test_add_func ("/guest-run/ring", test_ring);
  g_test_add_func ("/guest-run/files", test_files);
  g_test_add_func ("/guest-run/stream", test_stream);
  g_test_add_func ("/guest-run/malformed", test_malformed);
  status = g_test_run ();
  {
    const char *rm[] = { "/bin/rm", "-rf", dir, NULL };

    g_spawn_sync (NULL, (char **) rm, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL);
  }
  g_free (dir);
  return status;
}
