-- What the first schema looked like, with a little content; never changes.
CREATE TABLE sessions (id TEXT PRIMARY KEY, kind TEXT NOT NULL, project TEXT NOT NULL, image TEXT NOT NULL,
  image_version INTEGER NOT NULL, owner_uid INTEGER NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL,
  verdict TEXT NOT NULL, started INTEGER NOT NULL, finished INTEGER NOT NULL, deadline INTEGER NOT NULL,
  slot INTEGER NOT NULL, steps INTEGER NOT NULL, accelerator TEXT NOT NULL, task TEXT NOT NULL,
  options TEXT NOT NULL, transcript_head TEXT NOT NULL, transcript_count INTEGER NOT NULL) STRICT;
CREATE TABLE projects (name TEXT PRIMARY KEY, owner_uid INTEGER NOT NULL, owner_gid INTEGER NOT NULL,
  quota INTEGER NOT NULL, used INTEGER NOT NULL, backend TEXT NOT NULL, head TEXT NOT NULL,
  created INTEGER NOT NULL) STRICT;
CREATE TABLE images (name TEXT NOT NULL, version INTEGER NOT NULL, os TEXT NOT NULL, recipe TEXT NOT NULL,
  state TEXT NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL, built_at INTEGER NOT NULL, api_version INTEGER NOT NULL,
  PRIMARY KEY (name, version)) STRICT;
CREATE TABLE plan (session TEXT NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL, status TEXT NOT NULL,
  PRIMARY KEY (session, id)) STRICT;
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE journal (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, subject TEXT NOT NULL,
  action TEXT NOT NULL, data TEXT NOT NULL, outcome TEXT NOT NULL) STRICT;
INSERT INTO projects VALUES ('old', 1000, 1000, 0, 5, 'none', 'abc', 7);
INSERT INTO journal (at, subject, action, data, outcome) VALUES (1, 'image/debian', 'build', '{}', 'done');
INSERT INTO journal (at, subject, action, data, outcome) VALUES (2, 'session/abcdefgh', 'machine-start', '{"slot":3}', '');
PRAGMA user_version = 1;
