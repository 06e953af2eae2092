package evidencereceiver

import (
	"sync"
	"time"

	"go.uber.org/zap"
)

// warnEvery is how often the log names what an endpoint refuses for one reason.
const warnEvery = time.Minute

// remedies tell the operator what the sender is not told.
var remedies = map[outcome]string{
	unsigned:           "the header that the scheme reads is not there; compare the endpoint's scheme, or its header, with what the sender sends",
	malformedSignature: "the signature does not read; compare the endpoint's scheme with what the sender sends",
	badSignature:       "none of the endpoint's secrets made the signature; compare them with the sender's",
	expired:            "the signed time is further from this machine's than tolerance; set the clock, or raise tolerance",
	tooLarge:           "the body is too large; raise max_request_body_size",
	tooManyEvents:      "the body holds too many events; have the sender send fewer at once",
	unreadable:         "the body cannot be read; compare events and the compression with what the sender sends",
	busy:               "too many are served at a time; raise max_concurrent_requests",
	pipelineBusy:       "the pipeline did not take them; the exporter's log says why",
	pipelineRefused:    "the pipeline refused them for good; the log of its components says why",
}

// warnings tell in the log, once a minute for each endpoint and reason, that
// deliveries were refused: never what was in them. It is safe for concurrent use.
type warnings struct {
	logger *zap.Logger
	mu     sync.Mutex
	// refused has at most endpoints times outcomes entries.
	refused map[refusal]warned
}

type refusal struct {
	endpoint string
	outcome  outcome
}

// warned is when a refusal was named last, and how many there were since.
type warned struct {
	at         time.Time
	deliveries int
}

func newWarnings(logger *zap.Logger) *warnings {
	return &warnings{logger: logger, refused: map[refusal]warned{}}
}

func (w *warnings) answered(now time.Time, endpoint string, a *answer) {
	remedy, bad := remedies[a.outcome]
	if !bad {
		return
	}
	deliveries, due := w.due(now, refusal{endpoint, a.outcome})
	if !due {
		return
	}
	w.logger.Warn("webhooks were refused: "+remedy, zap.String("endpoint", endpoint),
		zap.String("outcome", string(a.outcome)), zap.Int("status", a.status), zap.Int("deliveries", deliveries))
}

// due counts a delivery, and says whether the log may name it.
func (w *warnings) due(now time.Time, what refusal) (deliveries int, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.refused[what]
	last.deliveries++
	if !last.at.IsZero() && now.Sub(last.at) < warnEvery {
		w.refused[what] = last
		return 0, false
	}
	w.refused[what] = warned{at: now}
	return last.deliveries, true
}
