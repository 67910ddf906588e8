-- number <-> (queue, type). Numbers are dense and never given back, so a process reads only what is new.

-- name: lane_list
-- in:   after int
-- out:  lane int, queue text, type text
SELECT lane, queue, type FROM pawl_lane WHERE lane > ?1 ORDER BY lane;

-- name: lane_add
-- in:   lane int, queue text, type text
INSERT INTO pawl_lane (lane, queue, type) VALUES (?1, ?2, ?3);
