CREATE TABLE memory(
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  scope TEXT NOT NULL,
  subject TEXT NOT NULL,
  created_at TEXT NOT NULL,
  body TEXT NOT NULL  -- the whole of it, as JSON
) STRICT;
-- The words that it is found by, each as hexadecimal digits: no character of them has a meaning.
CREATE VIRTUAL TABLE memory_words USING fts5(words, tokenize = 'ascii');
INSERT INTO memory_words(memory_words, rank) VALUES('secure-delete', 1);
