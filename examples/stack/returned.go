package stack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Returned is what came back from the sidecar into the collector as OTLP.
type Returned struct {
	Spans  []ReturnedSpan
	Events []ReturnedEvent
}

// ReturnedSpan is a span of the verdict pipeline.
type ReturnedSpan struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Name       string      `json:"name"`
	Links      []spanLink  `json:"links"`
	Attributes []attribute `json:"attributes"`
}

type spanLink struct {
	TraceID string `json:"traceId"`
	SpanID  string `json:"spanId"`
}

// ReturnedEvent is a log record of the verdict pipeline.
type ReturnedEvent struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	EventName  string      `json:"eventName"`
	Attributes []attribute `json:"attributes"`
}

type attribute struct {
	Key   string `json:"key"`
	Value struct {
		String *string `json:"stringValue"`
	} `json:"value"`
}

// Text is a string attribute; empty when absent.
func (s ReturnedSpan) Text(key string) string { return text(s.Attributes, key) }

// Text is a string attribute; empty when absent.
func (e ReturnedEvent) Text(key string) string { return text(e.Attributes, key) }

func text(attributes []attribute, key string) string {
	for _, a := range attributes {
		if a.Key == key && a.Value.String != nil {
			return *a.Value.String
		}
	}
	return ""
}

// About says whether the span is about the action of this span: in its trace or linked to it.
func (s ReturnedSpan) About(traceID, spanID string) bool {
	for _, link := range s.Links {
		if link.TraceID == traceID && link.SpanID == spanID {
			return true
		}
	}
	return s.TraceID == traceID
}

// Returned reads what has come back so far. A last line that is still being
// written is left for the next call.
func (s *Stack) Returned() (Returned, error) {
	content, err := os.ReadFile(s.ReturnedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return Returned{}, nil
	}
	if err != nil {
		return Returned{}, err
	}
	var all Returned
	for i, line := range bytes.Split(content[:bytes.LastIndexByte(content, '\n')+1], []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		if err := all.add(line); err != nil {
			return Returned{}, fmt.Errorf("%s:%d: %w", s.ReturnedFile(), i+1, err)
		}
	}
	return all, nil
}

func (r *Returned) add(line []byte) error {
	var request struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []ReturnedSpan `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
		ResourceLogs []struct {
			ScopeLogs []struct {
				LogRecords []ReturnedEvent `json:"logRecords"`
			} `json:"scopeLogs"`
		} `json:"resourceLogs"`
	}
	if err := json.Unmarshal(line, &request); err != nil {
		return err
	}
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.Spans = append(r.Spans, scope.Spans...)
		}
	}
	for _, resource := range request.ResourceLogs {
		for _, scope := range resource.ScopeLogs {
			r.Events = append(r.Events, scope.LogRecords...)
		}
	}
	return nil
}
