package dialect

// langfuse is the Langfuse SDK's tool observations. In JavaScript a failed one
// has level ERROR and leaves the span's status unset.
var langfuse = &spanDialect{
	Info:      Info{Name: "langfuse", Signal: Spans, DefaultOn: true},
	when:      attrIs("langfuse.observation.type", "tool"),
	tool:      texts{spanName()},
	callID:    texts{toolMessageCallID()},
	arguments: values{attrValue("langfuse.observation.input")},
	result:    values{attrValue("langfuse.observation.output")},
	session: texts{
		attrText("session.id"),
		attrText("langfuse.session.id"),
		attrText("langfuse.observation.metadata.session_id"),
		attrText("langfuse.observation.metadata.thread_id"),
	},
	workflow: texts{attrText("langfuse.trace.name")},
	outcome: outcomes{
		when("attr:langfuse.observation.level", Error, func(v *view) bool {
			return v.text("langfuse.observation.level") == "ERROR"
		}),
		statusError(),
		exception(),
		otherwise(Success),
	},
	// the Python decorator records the call as it was made
	envelopes: func(*view) envelopes { return envelopes{pythonCallEnvelope} },
	langchain: always,
}

func always(*view) bool { return true }
