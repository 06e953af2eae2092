-- What recording a settled action again may not change, by the contract's updates:
-- until_settled: names of fields with spaces between, empty for a contract that holds
-- nothing. No contract of before could say so.

-- +goose Up

ALTER TABLE contracts ADD COLUMN held_fields TEXT NOT NULL DEFAULT '';
