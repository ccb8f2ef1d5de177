"""The SQLite store, through apsw alone: another SQLite library opening the same file would drop its locks."""
