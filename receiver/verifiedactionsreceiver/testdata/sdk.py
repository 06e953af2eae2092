# Drives an unmodified AEVS SDK for sdk_test.go: makes receipts, delivers them while the pipeline is
# down, waits for a line on standard input, and delivers them again. Prints one JSON document a step.
import json
import os
import sys
from datetime import datetime, timedelta, timezone

import aevs
from aevs import _api

aevs.configure(
    api_key=os.environ["AEVS_TEST_KEY"],
    agent_id=os.environ["AEVS_TEST_AGENT"],
    base_url=os.environ["AEVS_TEST_URL"] + "/v1",
    buffer_path=os.environ["AEVS_TEST_BUFFER"],
    max_batch_size=int(os.environ["AEVS_TEST_BATCH"]),
    drain_interval_ms=3_600_000,  # only when told to
    receipt_visibility=os.environ["AEVS_TEST_VISIBILITY"],
)
aevs.enable(frameworks=[])


def say(**what):
    print(json.dumps(what), flush=True)


# What the SDK's adapters call for every tool call that they intercept.
for number in range(int(os.environ["AEVS_TEST_CALLS"])):
    started = datetime.now(timezone.utc)
    _api._handle_tool_call(
        tool_name="send_refund",
        inputs={"order_id": f"A-{number}", "amount": 12.5, "note": "für \u2028 <b>"},
        output={"ok": True, "ratio": 1 / 3},
        status="success",
        error=None,
        started_at=started,
        ended_at=started + timedelta(milliseconds=120),
        framework="langchain",
        framework_version="1.0.0",
    )
references = [r["reference_id"] for r in aevs.get_reference_ids()]
say(session=aevs.get_session_id(), references=references, pending=_api._buffer.pending_count())
aevs.flush()
say(pending=_api._buffer.pending_count())
sys.stdin.readline()
for _ in references:  # a batch at a time
    aevs.flush()
say(pending=_api._buffer.pending_count())
aevs.disable()
