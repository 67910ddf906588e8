-- Nothing: a standby has its primary's sequences. Numbers of steps are shared with engines whose counters are one server's.
SELECT 1;
