-- What a node says of itself besides its beats, the wish that it begin nothing more, and roles that one node at a
-- time has. An older program goes on without any of it: its nodes count as active.
ALTER TABLE pawl_node ADD COLUMN address TEXT;
ALTER TABLE pawl_node ADD COLUMN roles TEXT; -- names with newlines between them
ALTER TABLE pawl_node ADD COLUMN queues TEXT; -- the same; null: all
ALTER TABLE pawl_node ADD COLUMN state INTEGER NOT NULL DEFAULT 1; -- 0 joining, 1 active, 2 draining
ALTER TABLE pawl_node ADD COLUMN drain INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pawl_node ADD COLUMN connections INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pawl_node ADD COLUMN cpu_milli INTEGER NOT NULL DEFAULT 0;
ALTER TABLE pawl_node ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;

-- One row a role. until 0: nobody has it. epoch counts how often it was taken.
CREATE TABLE pawl_leader (
  role        TEXT PRIMARY KEY,
  node        TEXT NOT NULL,
  boot        TEXT NOT NULL,
  epoch       INTEGER NOT NULL,
  acquired_at INTEGER NOT NULL,
  until       INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO pawl_leader (role, node, boot, epoch, acquired_at, until)
VALUES ('maintenance', '', '', 0, 0, 0), ('scheduler', '', '', 0, 0, 0);
