-- Ended calls that somebody took out of the ledger (pawl archive), for people and their tools: names instead of
-- numbers, times as RFC 3339 UTC, inputs and results as text when they are JSON and as bytes when they are not.
-- Nothing of ours reads it, and whoever wants the space deletes from it. An older program does not know it.
CREATE TABLE pawl_archive (
  seq         INTEGER PRIMARY KEY,
  id          TEXT NOT NULL,
  status      TEXT NOT NULL,
  queue       TEXT NOT NULL,
  type        TEXT NOT NULL,
  method      TEXT NOT NULL,
  key         TEXT,
  key_no      INTEGER,
  input,
  result,
  error       TEXT,
  attempts    INTEGER NOT NULL,
  lost        INTEGER NOT NULL,
  redrives    INTEGER NOT NULL,
  priority    INTEGER NOT NULL,
  node        TEXT,
  created_at  TEXT NOT NULL,
  run_at      TEXT,
  started_at  TEXT,
  finished_at TEXT NOT NULL,
  archived_at TEXT NOT NULL,
  caller      TEXT,
  client      TEXT,
  parent      TEXT,
  trace       TEXT,
  tags        TEXT,
  options     TEXT
);
CREATE INDEX pawl_archive_id ON pawl_archive (id);
CREATE INDEX pawl_archive_finished ON pawl_archive (finished_at);
