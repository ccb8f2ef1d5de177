-- Tapes: append-only. `head` is one indexed row a run, a function of its tape.
CREATE TABLE head(
  run TEXT PRIMARY KEY, root TEXT NOT NULL, parent TEXT NOT NULL, machine TEXT NOT NULL, definition TEXT NOT NULL,
  title TEXT NOT NULL, state TEXT NOT NULL, status TEXT NOT NULL, outcome TEXT NOT NULL, seq INTEGER NOT NULL,
  hash BLOB NOT NULL, epoch INTEGER NOT NULL, created INTEGER NOT NULL, at INTEGER NOT NULL, due INTEGER
) WITHOUT ROWID;
-- No index holds a column that an ordinary step changes: a commit touches one page of `head`, and of `entry` the last one and its index's.
CREATE INDEX head_open ON head(created) WHERE status IN ('working', 'waiting for you', 'waiting until');
CREATE INDEX head_created ON head(created);
CREATE INDEX head_due ON head(due) WHERE due IS NOT NULL;
CREATE INDEX head_parent ON head(parent) WHERE parent <> '';
-- With a rowid: a row of a table without one moves to overflow pages from a quarter of a page on, and most entries are larger.
CREATE TABLE entry(run TEXT NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY(run, seq));
CREATE TABLE snapshot(run TEXT PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE payload(root TEXT NOT NULL, ref TEXT NOT NULL, body BLOB, size INTEGER NOT NULL, PRIMARY KEY(root, ref)) WITHOUT ROWID;
CREATE TABLE payload_key(root TEXT PRIMARY KEY, key BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE definition(digest TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE inbox(id INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, kind TEXT NOT NULL, body BLOB NOT NULL, at INTEGER NOT NULL, verdict BLOB);
CREATE INDEX inbox_pending ON inbox(run, id) WHERE verdict IS NULL;
CREATE TABLE gate(id TEXT PRIMARY KEY, run TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL, answer TEXT NOT NULL, person TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX gate_run ON gate(run);
CREATE TABLE budget(run TEXT NOT NULL, name TEXT NOT NULL, spent INTEGER NOT NULL, reserved INTEGER NOT NULL, bound INTEGER, PRIMARY KEY(run, name)) WITHOUT ROWID;
