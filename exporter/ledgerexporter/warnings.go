package ledgerexporter

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"go.uber.org/zap"
)

const (
	// warnEvery is how often the same contract is named in the log.
	warnEvery = time.Minute
	// warnContracts bounds how many contracts are remembered: their names come from configurations and telemetry.
	warnContracts = 256
)

// warnings name unknown contracts in the log, seldom, and settled actions that came
// again as something else, once a batch. It is safe for concurrent use.
type warnings struct {
	logger *zap.Logger
	mu     sync.Mutex
	last   *lru.LRU[string, time.Time]
}

func newWarnings(logger *zap.Logger) *warnings {
	last, err := lru.NewLRU[string, time.Time](warnContracts, nil)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &warnings{logger: logger, last: last}
}

func (w *warnings) unknownContracts(now time.Time, contracts map[string]int) {
	for contract, actions := range contracts {
		if w.due(contract, now) {
			w.logger.Warn("actions were not recorded: their contract is unknown to this ledger; run countersign contracts publish with its file, or correct the rule that names it",
				zap.String("contract_id", contract), zap.Int("actions", actions))
		}
	}
}

// held says that actions were not changed: an agent that does this may mean to
// have its verdict about something else.
func (w *warnings) held(actions int, first heldAction) {
	if actions == 0 {
		return
	}
	w.logger.Warn("actions came again with other content after their verdict had settled, and stand as they were recorded: their contract has updates: until_settled; to correct one, record a new action that compensates it",
		zap.Int("actions", actions), zap.String("tenant", first.tenant), zap.String("action_id", first.id), zap.Strings("fields", first.fields))
}

func (w *warnings) due(contract string, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.last.Get(contract); ok && now.Sub(last) < warnEvery {
		return false
	}
	w.last.Add(contract, now)
	return true
}
