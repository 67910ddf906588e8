-- What a node says of itself besides its beats, the wish that it begin nothing more, and roles that one node at a
-- time has. An older program goes on without any of it: its nodes count as active.
ALTER TABLE pawl.node
  ADD COLUMN address     text COLLATE "C",
  ADD COLUMN roles       text COLLATE "C", -- names with newlines between them
  ADD COLUMN queues      text COLLATE "C", -- the same; null: all
  ADD COLUMN state       integer NOT NULL DEFAULT 1, -- 0 joining, 1 active, 2 draining
  ADD COLUMN drain       integer NOT NULL DEFAULT 0,
  ADD COLUMN connections bigint NOT NULL DEFAULT 0,
  ADD COLUMN cpu_milli   bigint NOT NULL DEFAULT 0,
  ADD COLUMN memory      bigint NOT NULL DEFAULT 0;

-- One row a role. until 0: nobody has it. epoch counts how often it was taken.
CREATE TABLE pawl.leader (
  role        text COLLATE "C" PRIMARY KEY,
  node        text COLLATE "C" NOT NULL,
  boot        text COLLATE "C" NOT NULL,
  epoch       bigint NOT NULL,
  acquired_at bigint NOT NULL,
  until       bigint NOT NULL
);
INSERT INTO pawl.leader (role, node, boot, epoch, acquired_at, until)
VALUES ('maintenance', '', '', 0, 0, 0), ('scheduler', '', '', 0, 0, 0);
