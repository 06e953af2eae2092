package evidenceprocessor

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/processor/evidenceprocessor/internal/metadata"
)

// TestExamplesMakeFacts of what their receivers deliver.
func TestExamplesMakeFacts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file string
		fill func(plog.LogRecord)
		want []string
	}{
		"a line of JSON": {"filelog", func(e plog.LogRecord) {
			e.Body().SetStr(`{"time":"2026-09-28T10:42:07Z","id":"a1","event":"credit","account":"acc_9","cents":18050,"currency":"EUR"}`)
		}, []string{`shared billing credit_issued acc_9 billing:a1 {"amount":180.5,"currency":"EUR"}`}},
		"a line of text": {"filelog", func(e plog.LogRecord) {
			e.Body().SetStr("2026-09-28T10:42:07Z a1 CLOSED acc_9 by=jo")
		}, []string{`shared billing account_closed acc_9 billing:a1 {"by":"jo"}`}},
		"another line": {"filelog", func(e plog.LogRecord) { e.Body().SetStr("2026-09-28T10:42:07Z a1 OPENED acc_9") }, nil},
		"a message": {"kafka", func(e plog.LogRecord) {
			e.Body().SetStr(`{"id":"m1","type":"order.paid","order":{"id":"order_10231","payments":[
				{"id":"p1","captured_at":"2026-09-28T10:42:07Z","amount_minor":5800,"currency":"JPY"},
				{"id":"p2","captured_at":"2026-09-28T10:42:08Z","amount_minor":5120,"currency":"KWD"}]}}`)
		}, []string{
			`shared orders payment_captured order_10231 orders:payment:p1 {"amount":5800,"currency":"JPY"}`,
			`shared orders payment_captured order_10231 orders:payment:p2 {"amount":5.12,"currency":"KWD"}`,
		}},
		"a row": {"sqlquery", func(e plog.LogRecord) {
			for column, value := range map[string]string{
				"event_id": "91", "event_type": "order_cancelled", "subject_id": "order_10231", "subject_kind": "order",
				"occurred_at": "2026-09-28T10:42:09Z", "attributes": "", "linked_subject_id": "",
			} {
				e.Attributes().PutStr(column, value)
			}
		}, []string{`independent erp order_cancelled order_10231 erp:91 {}`}},
		"the last row": {"sqlquery", func(e plog.LogRecord) {
			for column, value := range map[string]string{
				"event_id": "91", "event_type": "complete", "subject_id": "", "subject_kind": "",
				"occurred_at": "2026-09-28T10:43:09Z", "attributes": "", "linked_subject_id": "",
			} {
				e.Attributes().PutStr(column, value)
			}
		}, []string{`independent erp is complete up to 2026-09-28T10:43:09Z`}},
		"the end of a push": {"webhooks", func(e plog.LogRecord) {
			e.Body().SetStr(`{"event":"sync.finished","complete_to":"2026-09-28T10:43:09Z"}`)
			deliver(t, e, fromCRM)
		}, []string{`shared crm is complete up to 2026-09-28T10:43:09Z`}},
		"an order as agents call it": {"webhooks", shopify(t, "orders_fulfilled"), []string{
			`independent shopify order_fulfilled order_10231 shopify:order:5512345678901:fulfilled:2026-09-28T06:42:30-04:00 {"currency":"USD","name":"#10231","total":"180.50"}`,
			`independent shopify order_status order_10231 REF {"currency":"USD","financial_status":"paid","fulfillment_status":"fulfilled","total":"180.50"}`,
			`order_10231 is also 5512345678901, says shopify`,
		}},
		"a refund of it": {"webhooks", shopify(t, "refunds_create"), []string{
			`independent shopify refund_created 5512345678901 shopify:refund:929361464:succeeded {"amount":180.5,"currency":"USD","refund_id":929361464,"status":"success","user_id":799407056}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ld := oneLog(tc.fill)
			batch := process(t, exampleConfig(t, tc.file), ld)
			var got []string
			for _, f := range batch.Facts {
				ref := f.Fact.RawRef
				if strings.HasPrefix(ref, "agent_api:") {
					ref = "REF"
				}
				got = append(got, f.Trust.String()+" "+f.Fact.Source+" "+f.Fact.Type+" "+f.Fact.SubjectID+" "+ref+" "+f.Fact.Attributes.Text())
			}
			for _, l := range batch.Links {
				got = append(got, l.Link.SubjectID+" is also "+l.Link.LinkedSubjectID+", says "+l.Source)
			}
			for _, w := range batch.Watermarks {
				got = append(got, w.Trust.String()+" "+w.Source+" is complete up to "+w.At.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || problem(ld) != "" {
				t.Errorf("%s (-want +got):\n%s", problem(ld), diff)
			}
		})
	}
}

// shopify is a sample of the mapping as the receiver delivers it.
func shopify(t *testing.T, name string) func(plog.LogRecord) {
	t.Helper()
	s := readSample(t, "testdata/mappings/shopify/"+name+".json")
	return func(e plog.LogRecord) { firstLog(s.logs(t, "shopify")).CopyTo(e) }
}

func exampleConfig(t *testing.T, name string) *Config {
	t.Helper()
	text, err := os.ReadFile("../../examples/evidence/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		t.Fatal(err)
	}
	config, err := FindConfig(conf, "")
	if err != nil {
		t.Fatalf("%s: %v", metadata.Type, err)
	}
	return config
}
