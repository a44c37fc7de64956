/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-report.h"

#include "bj-error.h"
#include "bj-fd.h"
#include "bj-json.h"
#include "bj-transcript.h"
#include "bj-untrusted.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/abstract.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ALGORITHM "Ed25519"
#define PEM_MAX 4096
#define PUBLIC_SIZE 32

struct _BjReportKey
{
  gnutls_privkey_t private_key;
  char            *public_key; /* base64 */
};

G_DEFINE_AUTO_CLEANUP_FREE_FUNC (gnutls_x509_privkey_t, gnutls_x509_privkey_deinit, NULL)
G_DEFINE_AUTO_CLEANUP_FREE_FUNC (gnutls_pubkey_t, gnutls_pubkey_deinit, NULL)

/* A key's text: never swapped out, wiped when it goes. */
typedef struct
{
  guint8 bytes[PEM_MAX];
  gsize  length;
} Secret;

static Secret *
secret_new (void)
{
  Secret *secret = g_new0 (Secret, 1);

  if (mlock (secret, sizeof *secret) < 0)
    g_debug ("The memory of a key cannot be locked: %s", g_strerror (errno));
  return secret;
}

static void
secret_free (Secret *secret)
{
  explicit_bzero (secret, sizeof *secret);
  munlock (secret, sizeof *secret);
  g_free (secret);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Secret, secret_free)

static gboolean
set_gnutls_error (GError **error, int code, const char *what)
{
  return bj_error_set (error, BJ_ERROR_FAILED, "%s: %s", what, gnutls_strerror (code));
}

void
bj_report_key_free (BjReportKey *key)
{
  gnutls_privkey_deinit (key->private_key);
  g_free (key->public_key);
  g_free (key);
}

char *
bj_report_key_dup_public (BjReportKey *key)
{
  return g_strdup (key->public_key);
}

static gboolean
check_key_file (int fd, const char *path, GError **error)
{
  struct stat st;

  if (fstat (fd, &st) < 0)
    return bj_fd_set_io_error (error, errno, "Reading the key %s", path);
  if (!S_ISREG (st.st_mode) || (st.st_uid != geteuid () && st.st_uid != 0))
    return bj_error_set (error, BJ_ERROR_INVALID, "The key %s is not a regular file of ours; move it away and a new one is made",
                         path);
  if ((st.st_mode & 077) != 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "Others may read the key %s; move it away and a new one is made", path);
  return TRUE;
}

static gboolean
read_secret (int fd, Secret *secret, const char *path, GError **error)
{
  while (secret->length < sizeof secret->bytes)
    {
      gssize n = read (fd, secret->bytes + secret->length, sizeof secret->bytes - secret->length);

      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0)
        return bj_fd_set_io_error (error, errno, "Reading the key %s", path);
      if (n == 0)
        return TRUE;
      secret->length += (gsize) n;
    }
  return bj_error_set (error, BJ_ERROR_INVALID, "%s is too long for a key", path);
}

static gboolean
derive_public (BjReportKey *key, GError **error)
{
  g_auto(gnutls_pubkey_t) public_key = NULL;
  gnutls_datum_t x = { NULL, 0 };
  gnutls_ecc_curve_t curve;
  int rc = gnutls_pubkey_init (&public_key);

  if (rc >= 0)
    rc = gnutls_pubkey_import_privkey (public_key, key->private_key, 0, 0);
  if (rc >= 0)
    rc = gnutls_pubkey_export_ecc_raw2 (public_key, &curve, &x, NULL, 0);
  if (rc < 0)
    return set_gnutls_error (error, rc, "Reading the public part of the report key");
  if (curve == GNUTLS_ECC_CURVE_ED25519 && x.size == PUBLIC_SIZE)
    key->public_key = g_base64_encode (x.data, x.size);
  gnutls_free (x.data);
  if (key->public_key == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "The report key is no " ALGORITHM " key");
  return TRUE;
}

static BjReportKey *
import_secret (const Secret *secret, GError **error)
{
  g_autoptr(BjReportKey) key = g_new0 (BjReportKey, 1);
  gnutls_datum_t pem = { (guint8 *) secret->bytes, (unsigned) secret->length };
  int rc = gnutls_privkey_init (&key->private_key);

  if (rc >= 0)
    rc = gnutls_privkey_import_x509_raw (key->private_key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
  if (rc < 0)
    {
      set_gnutls_error (error, rc, "Reading the report key");
      return NULL;
    }
  return derive_public (key, error) ? g_steal_pointer (&key) : NULL;
}

/* Returns NULL without an error when there is no such file. */
static BjReportKey *
read_key (const char *path, GError **error)
{
  g_autoptr(Secret) secret = secret_new ();
  g_auto(BjFd) fd = open (path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  BjReportKey *key = NULL;

  if (fd < 0 && errno == ENOENT)
    return NULL;
  if (fd < 0)
    {
      bj_fd_set_io_error (error, errno, "Opening the key %s", path);
      return NULL;
    }
  if (check_key_file (fd, path, error) && read_secret (fd, secret, path, error))
    {
      key = import_secret (secret, error);
      if (key == NULL)
        g_prefix_error (error, "%s: ", path);
    }
  return key;
}

static gboolean
generate_secret (Secret *secret, GError **error)
{
  g_auto(gnutls_x509_privkey_t) key = NULL;
  gsize size = sizeof secret->bytes;
  int rc = gnutls_x509_privkey_init (&key);

  if (rc >= 0)
    rc = gnutls_x509_privkey_generate (key, GNUTLS_PK_EDDSA_ED25519, GNUTLS_CURVE_TO_BITS (GNUTLS_ECC_CURVE_ED25519), 0);
  if (rc >= 0)
    rc = gnutls_x509_privkey_export_pkcs8 (key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, secret->bytes, &size);
  if (rc < 0)
    return set_gnutls_error (error, rc, "Making a report key");
  secret->length = size;
  return TRUE;
}

/* Whole or not at all, and never over another one. */
static gboolean
write_secret (const Secret *secret, const char *path, GError **error)
{
  g_autofree char *temporary = g_strconcat (path, ".XXXXXX", NULL);
  g_autofree char *folder = g_path_get_dirname (path);
  g_auto(BjFd) dir = open (folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  g_auto(BjFd) fd = g_mkstemp_full (temporary, O_WRONLY | O_CLOEXEC, 0600);
  gboolean ok;

  if (dir < 0 || fd < 0)
    return bj_fd_set_io_error (error, errno, "Making the key %s", path);
  ok = bj_fd_write_all (fd, secret->bytes, secret->length, error);
  if (ok && (fchmod (fd, 0600) < 0 || fsync (fd) < 0 || (link (temporary, path) < 0 && errno != EEXIST)
             || fsync (dir) < 0))
    ok = bj_fd_set_io_error (error, errno, "Writing the key %s", path);
  unlink (temporary);
  return ok;
}

static gboolean
make_key (const char *path, GError **error)
{
  g_autoptr(Secret) secret = secret_new ();

  return generate_secret (secret, error) && write_secret (secret, path, error);
}

static gboolean
write_public (BjReportKey *key, const char *path, GError **error)
{
  g_autofree char *public_path = g_strconcat (path, ".pub", NULL);
  g_autofree char *line = g_strconcat (key->public_key, "\n", NULL);
  g_autofree char *old = NULL;

  if (g_file_get_contents (public_path, &old, NULL, NULL))
    return g_str_equal (old, line)
           || bj_error_set (error, BJ_ERROR_INVALID,
                            "%s is not the public part of %s: reports signed before verify only with it. Put the key back that belongs "
                            "to it, or move it away (keep it for the old reports) and the new one is written",
                            public_path, path);
  return g_file_set_contents_full (public_path, line, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                                   0644, error);
}

BjReportKey *
bj_report_key_load (const char *path, GError **error)
{
  g_autoptr(GError) local_error = NULL;
  g_autofree char *public_path = g_strconcat (path, ".pub", NULL);
  g_autoptr(BjReportKey) key = read_key (path, &local_error);

  if (key == NULL && local_error == NULL && g_file_test (public_path, G_FILE_TEST_EXISTS))
    bj_error_set (&local_error, BJ_ERROR_INVALID,
                  "It is missing, but its public part %s is there: reports signed before verify only with that. Put the key back, or "
                  "move %s away (keep it for the old reports) and a new pair is made", public_path, public_path);
  if (key == NULL && local_error == NULL && make_key (path, &local_error))
    key = read_key (path, &local_error);
  if (key == NULL || !write_public (key, path, &local_error))
    {
      if (local_error == NULL)
        bj_error_set (&local_error, BJ_ERROR_FAILED, "The key %s went away", path);
      g_propagate_error (error, g_steal_pointer (&local_error));
      return NULL;
    }
  return g_steal_pointer (&key);
}

/* The canonical form of the report without "signature". */
static char *
signed_form (JsonObject *report)
{
  g_autoptr(JsonObject) copy = json_object_new ();
  g_autoptr(GList) keys = json_object_get_members (report);

  for (GList *l = keys; l != NULL; l = l->next)
    if (!g_str_equal (l->data, "signature"))
      json_object_set_member (copy, l->data, json_node_copy (json_object_get_member (report, l->data)));
  return bj_json_to_canonical (copy);
}

gboolean
bj_report_sign (JsonObject *report, BjReportKey *key, GError **error)
{
  g_autofree char *form = signed_form (report);
  gnutls_datum_t data = { (guint8 *) form, (unsigned) strlen (form) };
  gnutls_datum_t value = { NULL, 0 };
  g_autofree char *text = NULL;
  JsonObject *signature;
  int rc = gnutls_privkey_sign_data2 (key->private_key, GNUTLS_SIGN_EDDSA_ED25519, 0, &data, &value);

  if (rc < 0)
    return set_gnutls_error (error, rc, "Signing the report");
  text = g_base64_encode (value.data, value.size);
  gnutls_free (value.data);
  signature = json_object_new ();
  json_object_set_string_member (signature, "algorithm", ALGORITHM);
  json_object_set_string_member (signature, "key", key->public_key);
  json_object_set_string_member (signature, "value", text);
  json_object_set_object_member (report, "signature", signature);
  return TRUE;
}

static gboolean
verify_bytes (const char *form, const guint8 *public_bytes, const guint8 *value, gsize value_size, GError **error)
{
  g_auto(gnutls_pubkey_t) public_key = NULL;
  gnutls_datum_t x = { (guint8 *) public_bytes, PUBLIC_SIZE };
  gnutls_datum_t data = { (guint8 *) form, (unsigned) strlen (form) };
  gnutls_datum_t signature = { (guint8 *) value, (unsigned) value_size };
  int rc = gnutls_pubkey_init (&public_key);

  if (rc >= 0)
    rc = gnutls_pubkey_import_ecc_raw (public_key, GNUTLS_ECC_CURVE_ED25519, &x, NULL);
  if (rc < 0)
    return set_gnutls_error (error, rc, "Using the public key");
  rc = gnutls_pubkey_verify_data2 (public_key, GNUTLS_SIGN_EDDSA_ED25519, 0, &data, &signature);
  if (rc < 0)
    return bj_error_set (error, BJ_ERROR_INVALID, "The signature does not hold: the report was changed after it was signed");
  return TRUE;
}

static gboolean
verify_signature (JsonObject *report, const char *public_key, GError **error)
{
  JsonObject *signature = bj_json_get_object (report, "signature");
  const char *value_text = bj_json_get_string (signature, "value", "");
  g_autofree char *form = signed_form (report);
  g_autofree guint8 *public_bytes = NULL;
  g_autofree guint8 *value = NULL;
  g_autofree char *value_again = NULL;
  gsize public_size = 0, value_size = 0;

  if (signature == NULL)
    return bj_error_set (error, BJ_ERROR_INVALID, "The report is not signed");
  if (!g_str_equal (bj_json_get_string (signature, "algorithm", ""), ALGORITHM))
    return bj_error_set (error, BJ_ERROR_INVALID, "The report's signature is not of the kind " ALGORITHM);
  if (!g_str_equal (bj_json_get_string (signature, "key", ""), public_key))
    return bj_error_set (error, BJ_ERROR_INVALID, "The report was signed with another key");
  if (json_object_get_size (signature) != 3)
    return bj_error_set (error, BJ_ERROR_INVALID, "The report's signature has something in it that does not belong there");
  public_bytes = g_base64_decode (public_key, &public_size);
  value = g_base64_decode (value_text, &value_size);
  if (public_size != PUBLIC_SIZE)
    return bj_error_set (error, BJ_ERROR_INVALID, "The public key is not the base64 form of %d bytes", PUBLIC_SIZE);
  value_again = g_base64_encode (value, value_size);
  if (!g_str_equal (value_again, value_text))
    return bj_error_set (error, BJ_ERROR_INVALID, "The report's signature is not well-formed base64");
  return verify_bytes (form, public_bytes, value, value_size, error);
}

static char *
canonical_member (JsonObject *object, const char *key)
{
  g_autoptr(JsonObject) one = json_object_new ();

  if (json_object_has_member (object, key))
    json_object_set_member (one, key, json_node_copy (json_object_get_member (object, key)));
  return bj_json_to_canonical (one);
}

/* Names the first key of @keys_of in which both differ. */
static gboolean
compare_members (JsonObject *report, JsonObject *again, JsonObject *keys_of, GError **error)
{
  g_autoptr(GList) keys = json_object_get_members (keys_of);

  for (GList *l = keys; l != NULL; l = l->next)
    {
      g_autofree char *shown = bj_untrusted_escape (l->data, -1, 64);
      g_autofree char *ours = canonical_member (again, l->data);
      g_autofree char *theirs = canonical_member (report, l->data);

      if (!g_str_equal (l->data, "signature") && !g_str_equal (ours, theirs))
        return bj_error_set (error, BJ_ERROR_INVALID, "The report does not follow from the transcript: “%s” differs",
                             shown);
    }
  return TRUE;
}

static gboolean
verify_transcript (JsonObject *report, int transcript_fd, GError **error)
{
  JsonObject *said = bj_json_get_object (report, "transcript");
  g_autofree char *head = NULL;
  guint64 count = 0;
  g_autoptr(JsonArray) records = bj_transcript_read_strict (transcript_fd, &head, &count, error);
  g_autoptr(JsonObject) again = NULL;

  if (records == NULL)
    return FALSE;
  if (bj_json_get_int (said, "count", -1) != (gint64) count)
    return bj_error_set (error, BJ_ERROR_INVALID, "The transcript has %" G_GUINT64_FORMAT " records, the report counts %"
                         G_GINT64_FORMAT, count, bj_json_get_int (said, "count", -1));
  if (!g_str_equal (bj_json_get_string (said, "head", ""), head))
    return bj_error_set (error, BJ_ERROR_INVALID, "The transcript is another one: its last record is not the report's");
  again = bj_report_build (records, head, error);
  return again != NULL && compare_members (report, again, again, error) && compare_members (report, again, report, error);
}

gboolean
bj_report_verify (JsonObject *report, int transcript_fd, const char *public_key, GError **error)
{
  return verify_signature (report, public_key, error) && verify_transcript (report, transcript_fd, error);
}
