-- Chat: beside the tapes, never part of one. `chat_ask` counts a call from the moment it begins, told or not.
CREATE TABLE chat_thread(
  id TEXT PRIMARY KEY, title TEXT NOT NULL, created INTEGER NOT NULL, at INTEGER NOT NULL, agent TEXT NOT NULL, key BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX chat_thread_at ON chat_thread(at);
CREATE TABLE chat_message(thread TEXT NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY(thread, seq));
CREATE TABLE chat_ask(
  thread TEXT NOT NULL, question INTEGER NOT NULL, agent TEXT NOT NULL, attempt INTEGER NOT NULL, at INTEGER NOT NULL,
  answer INTEGER, tokens INTEGER, micro_usd INTEGER, PRIMARY KEY(thread, question, agent, attempt)
) WITHOUT ROWID;
