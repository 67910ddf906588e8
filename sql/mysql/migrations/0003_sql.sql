-- Nothing: applications submit on their own connections here. Numbers of steps are shared with engines on which
-- they submit in SQL.
DO 0;
