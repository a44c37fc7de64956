/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "bj-tree-module.h"

#include <stdlib.h>
#include <string.h>

/* In byte order: the top names of Python's own library (3.11), and of what test runners are made of. */
static const char *const modules[] = {
  "__future__", "_abc", "_aix_support", "_ast", "_asyncio", "_bisect", "_blake2", "_bootsubprocess", "_bz2",
  "_codecs", "_codecs_cn", "_codecs_hk", "_codecs_iso2022", "_codecs_jp", "_codecs_kr", "_codecs_tw", "_collections",
  "_collections_abc", "_compat_pickle", "_compression", "_contextvars", "_crypt", "_csv", "_ctypes", "_curses",
  "_curses_panel", "_datetime", "_dbm", "_decimal", "_elementtree", "_frozen_importlib", "_frozen_importlib_external",
  "_functools", "_gdbm", "_hashlib", "_heapq", "_imp", "_io", "_json", "_locale", "_lsprof", "_lzma", "_markupbase",
  "_md5", "_msi", "_multibytecodec", "_multiprocessing", "_opcode", "_operator", "_osx_support", "_overlapped",
  "_pickle", "_posixshmem", "_posixsubprocess", "_py_abc", "_pydecimal", "_pyio", "_pytest", "_queue", "_random",
  "_scproxy", "_sha1", "_sha256", "_sha3", "_sha512", "_signal", "_sitebuiltins", "_socket", "_sqlite3", "_sre",
  "_ssl", "_stat", "_statistics", "_string", "_strptime", "_struct", "_symtable", "_thread", "_threading_local",
  "_tkinter", "_tokenize", "_tracemalloc", "_typing", "_uuid", "_warnings", "_weakref", "_weakrefset", "_winapi",
  "_zoneinfo", "abc", "aifc", "argparse", "array", "ast", "asynchat", "asyncio", "asyncore", "atexit", "attr",
  "attrs", "audioop", "base64", "bdb", "behave", "binascii", "bisect", "builtins", "bz2", "cProfile", "calendar",
  "cgi", "cgitb", "chunk", "cmath", "cmd", "code", "codecs", "codeop", "collections", "colorsys", "compileall",
  "concurrent", "configparser", "contextlib", "contextvars", "copy", "copyreg", "coverage", "crypt", "csv", "ctypes",
  "curses", "dataclasses", "datetime", "dbm", "decimal", "difflib", "dis", "distutils", "django", "doctest", "email",
  "encodings", "ensurepip", "enum", "errno", "exceptiongroup", "execnet", "faulthandler", "fcntl", "filecmp",
  "fileinput", "flaky", "fnmatch", "fractions", "ftplib", "functools", "gc", "genericpath", "getopt", "getpass",
  "gettext", "glob", "graphlib", "green", "grp", "gzip", "hashlib", "heapq", "hmac", "html", "http", "hypothesis",
  "idlelib", "imaplib", "imghdr", "imp", "importlib", "iniconfig", "inspect", "invoke", "io", "ipaddress", "ipytest",
  "itertools", "json", "keyword", "lib2to3", "linecache", "locale", "logging", "lzma", "mailbox", "mailcap",
  "marshal", "math", "mimetypes", "mmap", "mock", "modulefinder", "msilib", "msvcrt", "multiprocessing", "mypy",
  "netrc", "nis", "nntplib", "nose", "nose2", "nox", "nt", "ntpath", "nturl2path", "numbers", "numpy", "opcode",
  "operator", "optparse", "os", "ossaudiodev", "packaging", "pathlib", "pdb", "pickle", "pickletools", "pip", "pipes",
  "pkg_resources", "pkgutil", "platform", "plistlib", "pluggy", "poplib", "posix", "posixpath", "pprint", "profile",
  "pstats", "pty", "pwd", "py", "py_compile", "pyclbr", "pydoc", "pydoc_data", "pyexpat", "pytest", "pytest_asyncio",
  "pytest_cov", "pytest_mock", "pytest_timeout", "queue", "quopri", "random", "re", "readline", "reprlib", "resource",
  "rlcompleter", "robot", "ruff", "runpy", "sched", "secrets", "select", "selectors", "setuptools", "shelve", "shlex",
  "shutil", "signal", "site", "sitecustomize", "six", "smtpd", "smtplib", "sndhdr", "socket", "socketserver", "spwd",
  "sqlite3", "sre_compile", "sre_constants", "sre_parse", "ssl", "stat", "statistics", "string", "stringprep",
  "struct", "subprocess", "sunau", "sybil", "symtable", "sys", "sysconfig", "syslog", "tabnanny", "tarfile",
  "telnetlib", "tempfile", "termios", "testtools", "textwrap", "threading", "time", "timeit", "tkinter", "token",
  "tokenize", "tomli", "tomllib", "tox", "trace", "traceback", "tracemalloc", "trial", "tty", "turtle", "turtledemo",
  "twisted", "typeguard", "types", "typing", "unicodedata", "unittest", "unittest2", "urllib", "usercustomize", "uu",
  "uuid", "venv", "virtualenv", "warnings", "wave", "weakref", "webbrowser", "winreg", "winsound", "wsgiref", "xdist",
  "xdrlib", "xml", "xmlrpc", "xmlrunner", "zipapp", "zipfile", "zipimport", "zlib", "zoneinfo", "zope",
};

static int
compare (const void *key, const void *element)
{
  return strcmp (key, *(const char *const *) element);
}

static gboolean
is_module (const char *name)
{
  return bsearch (name, modules, G_N_ELEMENTS (modules), sizeof modules[0], compare) != NULL;
}

gboolean
bj_tree_module_is_folder (const char *name)
{
  return is_module (name);
}

gboolean
bj_tree_module_is_file (const char *name)
{
  gsize length = strcspn (name, ".");
  const char *suffix = name + length;
  g_autofree char *stem = g_strndup (name, length);

  if (strcmp (suffix, ".py") != 0 && strcmp (suffix, ".pyc") != 0 && !g_str_has_suffix (suffix, ".so"))
    return FALSE;
  return is_module (stem);
}

/* What a compiler makes: "make" takes it for up to date, and Node and Java run it instead of what it was made from. */
gboolean
bj_tree_module_is_product (const char *name)
{
  static const char *const suffixes[] = { "",      ".o",     ".lo",  ".a",   ".so",  ".la",  ".out", ".exe", ".elf",
                                          ".class", ".pyc", ".beam", ".js",  ".mjs", ".cjs", ".gch", ".pch" };
  const char *dot = strrchr (name, '.');

  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++)
    if (strcmp (dot != NULL ? dot : "", suffixes[i]) == 0)
      return TRUE;
  return FALSE;
}
