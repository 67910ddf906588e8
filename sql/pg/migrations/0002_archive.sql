-- Ended calls that somebody took out of the ledger (pawl archive, pawl.archive()), for people and their tools:
-- names instead of numbers, times as timestamptz, inputs and results as text when they are JSON, else as bytes.
-- Nothing of ours reads it, and whoever wants the space deletes from it. An older program does not know it.
CREATE TABLE pawl.archive (
  seq          bigint PRIMARY KEY,
  id           text COLLATE "C" NOT NULL,
  status       text COLLATE "C" NOT NULL,
  queue        text COLLATE "C" NOT NULL,
  type         text COLLATE "C" NOT NULL,
  method       text COLLATE "C" NOT NULL,
  key          text COLLATE "C",
  key_no       bigint,
  input        text COLLATE "C",
  input_bytes  bytea,
  result       text COLLATE "C",
  result_bytes bytea,
  error        text COLLATE "C",
  attempts     integer NOT NULL,
  lost         integer NOT NULL,
  redrives     integer NOT NULL,
  priority     integer NOT NULL,
  node         text COLLATE "C",
  created_at   timestamptz NOT NULL,
  run_at       timestamptz,
  started_at   timestamptz,
  finished_at  timestamptz NOT NULL,
  archived_at  timestamptz NOT NULL,
  caller       text COLLATE "C",
  client       text COLLATE "C",
  parent       text COLLATE "C",
  trace        text COLLATE "C",
  tags         text COLLATE "C",
  options      text COLLATE "C"
);
CREATE INDEX archive_id ON pawl.archive (id);
CREATE INDEX archive_finished ON pawl.archive (finished_at);

-- A moment as people read it; null for none (0, or never).
CREATE FUNCTION pawl.moment(us bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN us <> 0 AND us < 9223372036854775807
            THEN to_timestamp(us::double precision / 1000000) END;

-- The words of enum pawl_state.
CREATE FUNCTION pawl.state_name(state integer) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (ARRAY['pending', 'processing', 'completed', 'failed', 'dead_letter', 'cancelled', 'expired'])[state];

-- Ended calls as rows of the archive.
CREATE FUNCTION pawl.archive_copy(seqs bigint[], now_us bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  copied bigint;
BEGIN
  INSERT INTO pawl.archive
  SELECT c.seq, c.id, pawl.state_name(o.status), l.queue, l.type, c.method, c.key, nullif(o.key_no, 0),
         CASE c.form WHEN 1 THEN convert_from(c.input, 'UTF8') END, CASE c.form WHEN 2 THEN c.input END,
         CASE o.form WHEN 1 THEN convert_from(o.result, 'UTF8') END, CASE o.form WHEN 2 THEN o.result END,
         o.error, o.attempts, o.lost, o.redrives, c.priority, o.node, pawl.moment(c.created_at),
         pawl.moment(c.run_at), pawl.moment(o.started_at), pawl.moment(o.finished_at), pawl.moment(now_us),
         c.caller, c.client, c.parent, c.trace, c.tags, c.options
  FROM pawl.call c JOIN pawl.outcome o ON o.seq = c.seq JOIN pawl.lane l ON l.lane = c.lane
  WHERE c.seq = ANY (seqs);
  GET DIAGNOSTICS copied = ROW_COUNT;
  RETURN copied;
END $$;
REVOKE ALL ON FUNCTION pawl.archive_copy(bigint[], bigint) FROM PUBLIC;
