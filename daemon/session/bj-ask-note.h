/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/*
 * What a session that waits for an answer has to know after a restart of the daemon, in a folder of its own in the session's.
 * While the note is there, the session waits, or is on its way back. Strings are (owned), nullable where nothing is said.
 */
typedef struct
{
  gint64 asked_at; /* seconds since 1970 */
  char *baseline;
  char *baseline_tree;
  char *agent_check;
  char *agent_setup;
  gboolean network;
  char *answer; /* what a person said, once somebody did */
  guint32 answer_uid;
  GBytes *memory;
} BjAskNote;

void bj_ask_note_clear (BjAskNote *note);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (BjAskNote, bj_ask_note_clear)

/** bj_ask_note_write: @dir: the session's folder. Durable when it returns. Without @answer. */
gboolean bj_ask_note_write (const char *dir, const BjAskNote *note, GError **error);
/** bj_ask_note_set_answer: @answer: (nullable): %NULL takes it back; @uid: who said it. Durable when it returns. */
gboolean bj_ask_note_set_answer (const char *dir, const char *answer, guint32 uid, GError **error);
/** bj_ask_note_read: Returns: %FALSE with BJ_ERROR_NOT_FOUND when there is none */
gboolean bj_ask_note_read (const char *dir, BjAskNote *note, GError **error);
void bj_ask_note_remove (const char *dir);
gboolean bj_ask_note_exists (const char *dir);

G_END_DECLS
