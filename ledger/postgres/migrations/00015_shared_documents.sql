-- The documents of a run's two verdicts are alike but for their ends. Of the
-- policy verdict only the end is stored now, and how many characters of the
-- outcome verdict's document, one place before it in the chain, come before that:
-- a fifth less to write and to keep. Rows of before keep their whole documents.

-- +goose Up

ALTER TABLE verdicts ADD COLUMN shared integer;

-- Verdicts with their whole documents: what a hash covers.
CREATE VIEW verdict_documents AS
SELECT v.tenant_id, v.seq, v.claim_id, v.lens, v.raw_verdict, v.reasons, v.verdict_hash, v.chain_hash,
  coalesce(left(o.document, v.shared), '') || v.document AS document
FROM verdicts v
LEFT JOIN verdicts o ON o.tenant_id = v.tenant_id AND o.seq = CASE WHEN v.lens = 'policy' AND v.shared IS NOT NULL THEN v.seq - 1 END;

-- +goose StatementBegin
DO $$
DECLARE
  member text;
BEGIN
  FOREACH member IN ARRAY ARRAY['countersign_verify', 'countersign_read', 'countersign_retention'] LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = member) THEN
      EXECUTE format('GRANT SELECT ON verdict_documents TO %I', member);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
