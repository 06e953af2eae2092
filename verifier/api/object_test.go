package api

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// TestD06_HalfSurrogatePairsAreNoIDs: decoded, they would all be the same id.
func TestD06_HalfSurrogatePairsAreNoIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct {
		id   string // as JSON
		good bool
	}{
		{`"\ud83d\ude00"`, true}, {`"\\ud800"`, true}, {`"\uFFFD"`, true}, {`"x\ud83d\ude00\ud83d\ude00y\/"`, true},
		{`"\ud800"`, false}, {`"\ud801x"`, false}, {`"\uDC00"`, false}, {`"\ud800\ud800\udc00"`, false},
		{`"\ud83d\ude00\udc00"`, false}, {`"\ud800\\udc00"`, false}, {`"\ud800\u0041"`, false},
	} {
		body := fmt.Sprintf(`{"contract_id": "refund_workflow", "action_id": %s, "subject_id": "s"}`, row.id)
		if row.good {
			f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", body)
			continue
		}
		got := f.must(t, http.StatusUnprocessableEntity, ledger.RoleRecorder, "POST", "/v1/actions", body)
		const want = `{"type":"about:blank","title":"Unprocessable Entity","status":422,"code":"invalid","detail":"the action cannot be recorded","request_id":"test",` +
			`"errors":[{"pointer":"/action_id","detail":"has half of a surrogate pair; ids are valid UTF-8"}]}`
		if got.body != want {
			t.Errorf("%s: got %s\nwant %s", row.id, got.body, want)
		}
	}
}
