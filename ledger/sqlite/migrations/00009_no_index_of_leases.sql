-- Nothing looks leases up: leased work is a few batches, found by the moment it
-- was due. A lease then writes one index less.

-- +goose Up

DROP INDEX due_leased;
