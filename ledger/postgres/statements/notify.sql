-- Told with the commit; entries of one transaction are one.
-- name: Notify
SELECT pg_notify('countersign', '');

-- name: Listen
LISTEN countersign;
