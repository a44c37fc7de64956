/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-guest-answer.h"
#include "bj-guest-request.h"
#include "bj-lane-frame.h"
#include "bj-lane.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The lane against the real server of the guest (`run serve -`) and against guests that break the rules, over a socket. */

#define WAIT_S 30

typedef struct
{
  char *dir;
  char *path;
  int listener;
  BjLane *lane;
} Fixture;

static gboolean
is_never_paused (gpointer data)
{
  return FALSE;
}

static void
set_up (Fixture *self, gconstpointer data)
{
  struct sockaddr_un address = { .sun_family = AF_UNIX };

  self->dir = g_dir_make_tmp ("lane-XXXXXX", NULL);
  self->path = g_build_filename (self->dir, "s", NULL);
  g_strlcpy (address.sun_path, self->path, sizeof address.sun_path);
  self->listener = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_assert_cmpint (bind (self->listener, (const struct sockaddr *) &address, sizeof address), ==, 0);
  g_assert_cmpint (listen (self->listener, 1), ==, 0);
  self->lane = bj_lane_new (self->path, is_never_paused, NULL);
  bj_lane_start (self->lane);
}

static void
tear_down (Fixture *self, gconstpointer data)
{
  bj_lane_free (self->lane);
  close (self->listener);
  g_unlink (self->path);
  g_rmdir (self->dir);
  g_free (self->path);
  g_free (self->dir);
}

static int
take_connection (Fixture *self)
{
  struct pollfd poll_fd = { self->listener, POLLIN, 0 };

  g_assert_cmpint (poll (&poll_fd, 1, WAIT_S * 1000), ==, 1);
  return accept (self->listener, NULL, NULL);
}

/* @fd: (transfer full) */
static GSubprocess *
start_server (int fd)
{
  g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_NONE);
  g_autoptr(GError) error = NULL;
  GSubprocess *process;

  g_subprocess_launcher_take_stdin_fd (launcher, fd);
  process = g_subprocess_launcher_spawn (launcher, &error, g_getenv ("BJ_TEST_RUN"), "serve", "-", NULL);
  g_assert_no_error (error);
  return process;
}

static gboolean
wait_open (Fixture *self)
{
  return bj_lane_wait_open (self->lane, g_get_monotonic_time () + WAIT_S * G_USEC_PER_SEC, NULL);
}

static GBytes *
make_request (const char *script, GBytes *input)
{
  g_autoptr(BjGuestRequest) request = bj_guest_request_new ();

  bj_guest_request_add (request, "argv", "/bin/sh");
  bj_guest_request_add (request, "argv", "-c");
  bj_guest_request_add (request, "argv", script);
  bj_guest_request_add_number (request, "cap", 1000);
  bj_guest_request_add (request, "input", input ? "1" : "0");
  return bj_guest_request_finish (request, input);
}

static BjLaneCall *
begin (Fixture *self, const char *mode, const char *script, GBytes *input)
{
  g_autoptr(GBytes) request = make_request (script, input);
  BjLaneCall *call = bj_lane_begin (self->lane, mode, request, g_str_equal (mode, "stream"));

  g_assert_nonnull (call);
  return call;
}

/* Waits for the end; discards output of a stream, counting it. */
static BjLaneCallState
wait_for (BjLaneCall *call, int *status, const char **reason, gsize *out)
{
  gint64 deadline = g_get_monotonic_time () + WAIT_S * G_USEC_PER_SEC;
  BjLaneCallState state;

  *out = 0;
  while ((state = bj_lane_call_get_state (call, status, reason)) == BJ_LANE_CALL_RUNNING
         && g_get_monotonic_time () < deadline)
    {
      g_autoptr(GByteArray) data = g_byte_array_new ();
      struct pollfd poll_fd = { bj_lane_call_get_event (call), POLLIN, 0 };

      bj_lane_call_take (call, BJ_LANE_OUT, data);
      bj_lane_call_give (call, BJ_LANE_OUT, data->len);
      *out += data->len;
      if (data->len == 0)
        poll (&poll_fd, 1, 1000);
    }
  {
    g_autoptr(GByteArray) data = g_byte_array_new ();

    bj_lane_call_take (call, BJ_LANE_OUT, data);
    *out += data->len;
  }
  return state;
}

static void
assert_exec (Fixture *self, const char *script, GBytes *input, const char *expected)
{
  g_autoptr(BjLaneCall) call = begin (self, "exec", script, input);
  g_autoptr(GBytes) output = NULL;
  g_autoptr(GBytes) out = NULL;
  BjGuestAnswer answer;
  const char *reason;
  int status;
  gsize n;

  g_assert_cmpint (wait_for (call, &status, &reason, &n), ==, BJ_LANE_CALL_DONE);
  g_assert_cmpint (status, ==, 0);
  output = bj_lane_call_steal_result (call);
  g_assert_true (bj_guest_answer_parse (g_bytes_get_data (output, NULL), g_bytes_get_size (output), &answer, NULL));
  out = bj_guest_answer_dup_stream (&answer, 0, answer.out_total);
  g_assert_cmpmem (g_bytes_get_data (out, NULL), (int) g_bytes_get_size (out), expected, (int) strlen (expected));
}

static void
test_calls (Fixture *self, gconstpointer data)
{
  g_autoptr(GSubprocess) server G_GNUC_UNUSED = start_server (take_connection (self));
  g_autofree char *text = g_strnfill (3000000, 'x');
  g_autoptr(GBytes) big = g_bytes_new (text, 3000000);
  g_autoptr(GBytes) small = g_bytes_new ("in", 2);
  BjLaneCall *many[100];
  gint64 start = g_get_monotonic_time ();

  g_assert_true (wait_open (self));
  assert_exec (self, "echo a", NULL, "a\n");
  g_test_message ("one call: %.4f s", (double) (g_get_monotonic_time () - start) / 1e6);
  assert_exec (self, "cat", small, "in");
  assert_exec (self, "wc -c", big, "3000000\n");
  assert_exec (self, "true", big, "");
  for (guint i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = begin (self, "exec", "sleep 0.1", NULL);
  for (guint i = 0; i < G_N_ELEMENTS (many); i++)
    {
      const char *reason;
      int status;
      gsize n;

      g_assert_cmpint (wait_for (many[i], &status, &reason, &n), ==, BJ_LANE_CALL_DONE);
      g_assert_cmpint (status, ==, 0);
      bj_lane_call_free (many[i]);
    }
}

/* More input than the request: as much as there is room for at a time. */
static void
test_input (Fixture *self, gconstpointer data)
{
  g_autoptr(GSubprocess) server G_GNUC_UNUSED = start_server (take_connection (self));
  g_autoptr(GBytes) none = g_bytes_new (NULL, 0);
  g_autoptr(GBytes) request = make_request ("sha256sum", none);
  g_autoptr(GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  g_autofree guint8 *block = g_malloc (65536);
  g_autoptr(GByteArray) out = g_byte_array_new ();
  g_autoptr(BjLaneCall) call = NULL;
  g_autoptr(BjLaneCall) deaf = NULL;
  const char *reason;
  gsize sent = 0;
  int status;

  g_assert_true (wait_open (self));
  deaf = bj_lane_begin (self->lane, "stream", request, BJ_LANE_CALL_OUTPUT | BJ_LANE_CALL_INPUT);
  call = bj_lane_begin (self->lane, "stream", request, BJ_LANE_CALL_OUTPUT | BJ_LANE_CALL_INPUT);
  while (sent < 30000000)
    {
      struct pollfd poll_fd = { bj_lane_call_get_event (call), POLLIN, 0 };
      gsize n = MIN (MIN (bj_lane_call_get_room (call), 65536), 30000000 - sent);

      memset (block, (int) (sent % 251), n);
      bj_lane_call_put (call, block, n);
      g_checksum_update (sum, block, (gssize) n);
      sent += n;
      g_assert_true (n > 0 || poll (&poll_fd, 1, WAIT_S * 1000) == 1);
      g_assert_cmpint (bj_lane_call_get_state (call, &status, &reason), ==, BJ_LANE_CALL_RUNNING);
    }
  bj_lane_call_end_input (call);
  g_assert_cmpuint (bj_lane_call_get_room (call), ==, 0);
  while (bj_lane_call_get_state (call, &status, &reason) == BJ_LANE_CALL_RUNNING)
    {
      struct pollfd poll_fd = { bj_lane_call_get_event (call), POLLIN, 0 };

      g_assert_cmpint (poll (&poll_fd, 1, WAIT_S * 1000), ==, 1);
    }
  g_assert_cmpint (status, ==, 0);
  bj_lane_call_take (call, BJ_LANE_OUT, out);
  g_assert_cmpuint (out->len, >, 64);
  g_assert_cmpmem (out->data, 64, g_checksum_get_string (sum), 64);
  g_assert_cmpint (bj_lane_call_get_state (deaf, &status, &reason), ==, BJ_LANE_CALL_RUNNING);
}

static void
test_stream (Fixture *self, gconstpointer data)
{
  g_autoptr(GSubprocess) server G_GNUC_UNUSED = start_server (take_connection (self));
  BjLaneCall *stuck;
  BjLaneCall *closed;
  g_autoptr(BjLaneCall) flowing = NULL;
  const char *reason;
  int status;
  gsize n;

  g_assert_true (wait_open (self));
  stuck = begin (self, "stream", "yes", NULL);
  closed = begin (self, "stream", "yes", NULL);
  flowing = begin (self, "stream", "head -c 30000000 /dev/zero", NULL);
  g_assert_cmpint (wait_for (flowing, &status, &reason, &n), ==, BJ_LANE_CALL_DONE);
  g_assert_cmpuint (n, ==, 30000000);
  assert_exec (self, "echo a", NULL, "a\n");
  bj_lane_call_close (closed, BJ_LANE_OUT);
  g_assert_cmpint (wait_for (closed, &status, &reason, &n), ==, BJ_LANE_CALL_DONE);
  g_assert_cmpint (status, ==, 0);
  bj_lane_call_free (closed);
  g_assert_cmpint (bj_lane_call_get_state (stuck, &status, &reason), ==, BJ_LANE_CALL_RUNNING);
  bj_lane_call_free (stuck);
  assert_exec (self, "pgrep -c -P $PPID . || true", NULL, "1\n");
}

/* Commands do not outlive the connection or the server. */
static void
test_lost (Fixture *self, gconstpointer data)
{
  g_autoptr(GSubprocess) first = start_server (take_connection (self));
  g_autoptr(GSubprocess) second = NULL;
  g_autoptr(BjLaneCall) call = NULL;
  g_autofree char *mark = g_build_filename (self->dir, "mark", NULL);
  g_autofree char *script = g_strdup_printf ("trap 'echo stopped >%s; exit' TERM; sleep 98765 & wait", mark);
  gint64 deadline = g_get_monotonic_time () + WAIT_S * G_USEC_PER_SEC;
  const char *reason;
  int status;
  gsize n;

  g_assert_true (wait_open (self));
  call = begin (self, "exec", script, NULL);
  assert_exec (self, "sleep 0.3", NULL, "");
  g_subprocess_force_exit (first);
  g_assert_cmpint (wait_for (call, &status, &reason, &n), ==, BJ_LANE_CALL_LOST);
  second = start_server (take_connection (self));
  g_assert_true (wait_open (self));
  assert_exec (self, "echo b", NULL, "b\n");
  while (!g_file_test (mark, G_FILE_TEST_EXISTS) && g_get_monotonic_time () < deadline)
    g_usleep (10000);
  g_assert_cmpint (g_unlink (mark), ==, 0);
}

typedef struct
{
  const char *name;
  guint16 type;
  guint16 length;
  guint32 id; /* 1 is a call that runs */
  const char *payload;
} Hostile;

static const Hostile hostile[] = {
  { "unknown type", 99, 0, 1, "" },
  { "unknown id", BJ_LANE_RESULT, 1, 77, "x" },
  { "no id", BJ_LANE_RESULT, 1, 0, "x" },
  { "empty result", BJ_LANE_RESULT, 0, 1, "" },
  { "output of a call that streams none", BJ_LANE_OUT, 1, 1, "x" },
  { "too long", BJ_LANE_RESULT, 0xffff, 1, "" },
  { "credit beyond the window", BJ_LANE_CREDIT, 8, 1, "\3\0\0\0\377\377\377\377" },
  { "credit for nothing", BJ_LANE_CREDIT, 8, 1, "\102\0\0\0\1\0\0\0" },
  { "credit not used", BJ_LANE_CREDIT, 8, 1, "\3\0\0\0\0\0\4\0" },
  { "status out of range", BJ_LANE_DONE, 4, 1, "\0\1\0\0" },
  { "second OK", BJ_LANE_OK, 16, 0, "0123456789abcdef" },
  { "the host's words", BJ_LANE_CALL, 5, 1, "exec" },
};

/* Reads the HELLO that came last, and says OK to it. */
static void
answer_hello (int fd)
{
  g_autoptr(GByteArray) in = g_byte_array_new ();
  g_autoptr(GByteArray) out = g_byte_array_new ();
  const BjLaneHead head = { BJ_LANE_MAGIC, BJ_LANE_HELLO, BJ_LANE_NONCE_SIZE, 0 };
  guint8 buffer[65536];
  const guint8 *found = NULL;

  while (found == NULL)
    {
      struct pollfd poll_fd = { fd, POLLIN, 0 };
      gssize n;

      g_assert_cmpint (poll (&poll_fd, 1, WAIT_S * 1000), ==, 1);
      n = read (fd, buffer, sizeof buffer);
      g_assert_cmpint (n, >, 0);
      g_byte_array_append (in, buffer, (guint) n);
      found = memmem (in->data, in->len, &head, sizeof head);
    }
  g_byte_array_append (out, (const guint8 *) "rubbish", 7);
  bj_lane_frame_append (out, BJ_LANE_OK, 0, found + sizeof head, BJ_LANE_NONCE_SIZE);
  g_assert_cmpint (write (fd, out->data, out->len), ==, (gssize) out->len);
}

static void
test_hostile (Fixture *self, gconstpointer data)
{
  int fd = take_connection (self);

  for (guint i = 0; i < G_N_ELEMENTS (hostile); i++)
    {
      const Hostile *frame = &hostile[i];
      BjLaneHead head = { BJ_LANE_MAGIC, frame->type, frame->length, frame->id };
      g_autoptr(BjLaneCall) call = NULL;
      const char *reason;
      int status;
      gsize n;

      g_test_message ("%s", frame->name);
      answer_hello (fd);
      g_assert_true (wait_open (self));
      call = begin (self, "exec", "true", NULL);
      if (head.id == 1)
        head.id = i + 1; /* calls are counted */
      g_assert_cmpint (write (fd, &head, sizeof head), ==, sizeof head);
      if (frame->length < 100 && frame->length > 0)
        g_assert_cmpint (write (fd, frame->payload, frame->length), ==, frame->length);
      g_assert_cmpint (wait_for (call, &status, &reason, &n), ==, BJ_LANE_CALL_LOST);
      g_assert_nonnull (strstr (reason, "malformed"));
    }
  close (fd);
}

/* A result has a greatest length, and one stream a window. */
static void
test_too_much (Fixture *self, gconstpointer data)
{
  static const guint8 payload[BJ_LANE_PAYLOAD_MAX];
  int fd = take_connection (self);

  for (guint i = 0; i < 2; i++)
    {
      g_autoptr(BjLaneCall) call = NULL;
      g_autoptr(GByteArray) frame = g_byte_array_new ();
      const char *reason;
      int status;
      guint sent = 0;

      answer_hello (fd);
      g_assert_true (wait_open (self));
      call = begin (self, i == 0 ? "exec" : "stream", "true", NULL);
      bj_lane_frame_append (frame, i == 0 ? BJ_LANE_RESULT : BJ_LANE_ERR, i + 1, payload, sizeof payload);
      while (bj_lane_call_get_state (call, &status, &reason) == BJ_LANE_CALL_RUNNING && sent < 200)
        {
          g_assert_cmpint (write (fd, frame->data, frame->len), ==, (gssize) frame->len);
          sent++;
        }
      g_assert_cmpint (bj_lane_call_get_state (call, &status, &reason), ==, BJ_LANE_CALL_LOST);
    }
  close (fd);
}

/* A server that waits for the rest of a frame when its host goes and another comes. */
static void
test_half_frame (Fixture *self, gconstpointer data)
{
  const BjLaneHead half = { BJ_LANE_MAGIC, BJ_LANE_DATA, BJ_LANE_PAYLOAD_MAX, 1 };
  int ends[2];
  g_autoptr(GSubprocess) server = NULL;
  int fd = take_connection (self);
  gint64 deadline = g_get_monotonic_time () + WAIT_S * G_USEC_PER_SEC;
  guint8 buffer[65536];
  gboolean open = FALSE;

  g_assert_cmpint (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), ==, 0);
  server = start_server (ends[1]);
  /* Greeted by somebody else, so that it takes what follows for frames. */
  {
    g_autoptr(GByteArray) hello = g_byte_array_new ();

    bj_lane_frame_append (hello, BJ_LANE_HELLO, 0, "0123456789abcdef", 16);
    g_byte_array_append (hello, (const guint8 *) &half, sizeof half);
    g_assert_cmpint (write (ends[0], hello->data, hello->len), ==, (gssize) hello->len);
  }
  while (!open)
    {
      struct pollfd fds[2] = { { fd, POLLIN, 0 }, { ends[0], POLLIN, 0 } };

      g_assert_cmpint (g_get_monotonic_time (), <, deadline);
      poll (fds, 2, 20);
      for (int i = 0; i < 2; i++)
        if (fds[i].revents != 0)
          {
            gssize n = read (fds[i].fd, buffer, sizeof buffer);

            g_assert_cmpint (n, >, 0);
            g_assert_cmpint (write (i == 0 ? ends[0] : fd, buffer, (gsize) n), ==, n);
          }
      open = bj_lane_is_open (self->lane);
    }
  close (fd);
  close (ends[0]);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/lane/calls", Fixture, NULL, set_up, test_calls, tear_down);
  g_test_add ("/lane/stream", Fixture, NULL, set_up, test_stream, tear_down);
  g_test_add ("/lane/input", Fixture, NULL, set_up, test_input, tear_down);
  g_test_add ("/lane/lost", Fixture, NULL, set_up, test_lost, tear_down);
  g_test_add ("/lane/hostile", Fixture, NULL, set_up, test_hostile, tear_down);
  g_test_add ("/lane/too-much", Fixture, NULL, set_up, test_too_much, tear_down);
  g_test_add ("/lane/half-frame", Fixture, NULL, set_up, test_half_frame, tear_down);
  return g_test_run ();
}
