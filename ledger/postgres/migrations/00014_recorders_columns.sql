-- Who records actions, or brings facts, writes what that takes and no more: a
-- login of the agents' collector could put in an action with verdicts that nobody
-- had made, and so make a failed one compensated, or hold work under a lease.

-- +goose Up

-- +goose StatementBegin
DO $$
DECLARE
  member text;
BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_record') THEN
    REVOKE INSERT ON claims FROM countersign_record;
    GRANT INSERT (tenant_id, claim_id, action_id, contract_id, contract_version, workflow_id, agent_id, action_type, subject_id, subject_kind,
      requested_at, params, channel, compensates, trace_id, span_id, session_id, reference_id, tool, reported_outcome, started_nanos, recorded_at)
      ON claims TO countersign_record;
  END IF;
  FOREACH member IN ARRAY ARRAY['countersign_record', 'countersign_evidence'] LOOP
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = member) THEN
      EXECUTE format('REVOKE INSERT, UPDATE ON due FROM %I', member);
      EXECUTE format('GRANT INSERT (tenant_id, claim_id, due_at, generation, triggered_by),
        UPDATE (due_at, triggered_by, generation, attempts, parked_at, parked_error, made) ON due TO %I', member);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
