-- Runs whose journal cannot be read are put aside by name; the others go on.
CREATE TABLE quarantine(run TEXT PRIMARY KEY, why TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID;
