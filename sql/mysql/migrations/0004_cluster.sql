-- What a node says of itself besides its beats, the wish that it begin nothing more, and roles that one node at a
-- time has. An older program goes on without any of it: its nodes count as active. Fit to be run again after a
-- crash in the middle, since each statement here commits by itself.
SET @pawl_step = IF((SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()
                     AND TABLE_NAME = 'pawl_node' AND COLUMN_NAME = 'memory') > 0, 'DO 0',
  'ALTER TABLE pawl_node
     ADD COLUMN address VARCHAR(255),
     ADD COLUMN roles VARCHAR(255),
     ADD COLUMN queues TEXT,
     ADD COLUMN state INT NOT NULL DEFAULT 1,
     ADD COLUMN drain INT NOT NULL DEFAULT 0,
     ADD COLUMN connections BIGINT NOT NULL DEFAULT 0,
     ADD COLUMN cpu_milli BIGINT NOT NULL DEFAULT 0,
     ADD COLUMN memory BIGINT NOT NULL DEFAULT 0');
PREPARE pawl_step FROM @pawl_step;
EXECUTE pawl_step;
DEALLOCATE PREPARE pawl_step;

-- One row a role. until 0: nobody has it. epoch counts how often it was taken.
CREATE TABLE IF NOT EXISTS pawl_leader (
  role        VARCHAR(64) NOT NULL PRIMARY KEY,
  node        VARCHAR(255) NOT NULL,
  boot        VARCHAR(64) NOT NULL,
  epoch       BIGINT NOT NULL,
  acquired_at BIGINT NOT NULL,
  `until`     BIGINT NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT IGNORE INTO pawl_leader (role, node, boot, epoch, acquired_at, `until`)
VALUES ('maintenance', '', '', 0, 0, 0), ('scheduler', '', '', 0, 0, 0);
