-- How rows are stored, not what they say.
--
-- The first verdict about an action changes its row. Where the page has room for
-- the new row, no index is written; a batch settles all actions of a page at
-- once, so that the room has to be for all of them.
--
-- Documents of verdicts and reports are long enough to be compressed, which
-- with lz4 takes a fraction of the time. A server built without lz4 keeps its default.

-- +goose Up

ALTER TABLE claims SET (fillfactor = 45);

-- A lease changes the row of the work and, without an index that names leases, no
-- index either. Leased work is a few batches, found by the moment it was due.
DROP INDEX due_leased;
ALTER TABLE due SET (fillfactor = 50);

-- +goose StatementBegin
DO $$
BEGIN
  ALTER TABLE verdicts ALTER COLUMN document SET COMPRESSION lz4;
  ALTER TABLE runs ALTER COLUMN report SET COMPRESSION lz4;
EXCEPTION
  WHEN feature_not_supported THEN
    RAISE NOTICE 'this server cannot compress with lz4; documents of verdicts and reports are compressed as before';
END
$$;
-- +goose StatementEnd
