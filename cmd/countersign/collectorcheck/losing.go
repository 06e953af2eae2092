package collectorcheck

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

var losing = []Rule{
	{
		"held-in-memory",
		"the sender is told that its items were taken while they are only in memory: a crash loses them, and nobody sends them again",
		heldInMemory,
	},
	{
		"retry-gives-up",
		"an outage of the database that is longer loses everything that is queued",
		retryGivesUp,
	},
	{
		"queue-in-memory",
		"what is queued was acknowledged, and is gone when the collector ends",
		queueInMemory,
	},
	{
		"queue-blocks",
		"senders wait until their own timeout instead of being told to come again, and those that give up then lose what they hold",
		queueBlocks,
	},
	{
		"queue-not-durable",
		"what was acknowledged does not outlive what the disk and its folder do not outlive",
		queueNotDurable,
	},
	{
		"store-in-memory",
		"everything is gone when the collector ends, and no sidecar sees it before",
		storeInMemory,
	},
	{
		"store-not-durable",
		"everything that was recorded is gone when the folder is emptied, which a restart of the machine may do",
		storeNotDurable,
	},
	{
		"filtered-evidence",
		"its sender is told that it was taken, and it is kept nowhere, neither as a fact nor among what was rejected",
		filteredEvidence,
	},
	{
		"sampled-away",
		"an action or a fact that was sampled away was never recorded, and no verdict says so",
		sampledAway,
	},
	{
		"dropped-on-error",
		"one item that an expression cannot read drops all that came with it",
		droppedOnError,
	},
	{
		"reader-does-not-wait",
		"what the pipeline does not take, because the queue is full or the memory limit is reached, is skipped and never read again",
		readerDoesNotWait,
	},
}

func heldInMemory(d *document, report reporter) {
	held := ofKind("batch", "groupbytrace", "tailsampling", "queuebatch", "delay")
	for i := range d.pipelines {
		p := &d.pipelines[i]
		durable := slices.IndexFunc(p.exporters, func(e used) bool {
			return e.kind() == "ledger" || e.get("sending_queue", "storage").there()
		})
		if durable < 0 {
			continue
		}
		for _, o := range d.origins(p) {
			for _, processor := range o.passed {
				if held(processor) && !processor.get("sending_queue", "storage").there() {
					report(processor.at, "remove it; batch in the exporter's sending_queue: batch instead",
						"processor %s acknowledges what it holds in memory, before the queue of %s in pipeline %s", processor.id, p.exporters[durable].id, p.name)
				}
			}
		}
	}
}

// eachLedger visits the ledger exporters that are written out.
func eachLedger(d *document, visit func(component)) {
	for _, e := range sorted(d.exporters) {
		if e.kind() == "ledger" && !e.elsewhere() {
			visit(e)
		}
	}
}

func retryGivesUp(d *document, report reporter) {
	eachLedger(d, func(e component) {
		retry := e.get("retry_on_failure")
		if retry.get("enabled").is("false") {
			report(retry.get("enabled"), "remove enabled: false", "exporter %s gives up at the first failure", e.id)
			return
		}
		most := retry.get("max_elapsed_time")
		if text, ok := most.text(); ok && !isZero(text) {
			report(most, "write max_elapsed_time: 0, which never gives up and is this exporter's default", "exporter %s gives up after %s", e.id, text)
		}
	})
}

// isZero reads a duration; a text that is none is not judged here.
func isZero(text string) bool {
	d, err := time.ParseDuration(text)
	return text == "0" || err != nil || d == 0
}

func queueInMemory(d *document, report reporter) {
	eachLedger(d, func(e component) {
		queue := e.get("sending_queue")
		// Without a queue, and with one that waits, the sender's acknowledgement means: in the database.
		if queue.elsewhere() || queue.get("enabled").is("false") || queue.get("wait_for_result").is("true") {
			return
		}
		storage := queue.get("storage")
		if storage.empty() {
			report(queue.get("storage"), "set sending_queue: storage: file_storage, and start that extension", "the queue of exporter %s has no storage", e.id)
			return
		}
		id, ok := storage.text()
		if !ok {
			return
		}
		if _, declared := d.extensions[id]; !declared {
			report(storage, "declare it under extensions", "exporter %s keeps its queue in %s, which is not declared", e.id, id)
			return
		}
		started := slices.ContainsFunc(d.serviceExtensions.items(), func(s setting) bool { return s.is(id) })
		if !started && !d.serviceExtensions.elsewhere() {
			report(storage, "add it to service: extensions", "exporter %s keeps its queue in %s, which is not started", e.id, id)
		}
	})
}

func queueBlocks(d *document, report reporter) {
	eachLedger(d, func(e component) {
		queue := e.get("sending_queue")
		if block := queue.get("block_on_overflow"); block.is("true") {
			report(block, "remove it: a full queue then answers that the sender shall come again", "exporter %s holds its senders while the queue is full", e.id)
		}
		if size := queue.get("queue_size"); size.is("0", "1") {
			report(size, "leave it out, or make it large enough for an outage", "the queue of exporter %s has no room", e.id)
		}
	})
}

// queueNotDurable looks at the storage that queues are kept in.
func queueNotDurable(d *document, report reporter) {
	for _, id := range queueStorages(d) {
		e, declared := d.extensions[id]
		if !declared || e.kind() != "filestorage" || e.elsewhere() {
			continue
		}
		if fsync := e.get("fsync"); fsync.empty() || fsync.is("false") {
			report(fsync, "write fsync: true", "%s does not flush to the disk: a power cut loses what was acknowledged, or the whole file", id)
		}
		if folder := e.get("directory"); isTemporary(folder) {
			report(folder, "choose a folder that outlives a restart of the machine, like /var/lib/countersign/queue", "%s keeps its files in a folder that is emptied", id)
		}
		if recreate := e.get("recreate"); recreate.is("true") {
			report(recreate, "remove it, and look at a damaged file before you delete it", "%s begins with an empty file when it cannot read the old one", id)
		}
	}
}

func queueStorages(d *document) []string {
	var ids []string
	eachLedger(d, func(e component) {
		if id, ok := e.get("sending_queue", "storage").text(); ok && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	})
	return ids
}

func isTemporary(folder setting) bool {
	text, ok := folder.text()
	return ok && isBelowTemporary(text)
}

func isBelowTemporary(path string) bool {
	text := filepath.ToSlash(filepath.Clean(path))
	return slices.ContainsFunc([]string{"/tmp", "/var/tmp", "/dev/shm", "/run"}, func(dir string) bool {
		return text == dir || strings.HasPrefix(text, dir+"/")
	})
}

func storeInMemory(d *document, report reporter) {
	eachLedger(d, func(e component) {
		if store := e.get("store"); store.is("memory:") {
			report(store, "write sqlite:PATH or postgres://HOST/DATABASE", "exporter %s writes into memory", e.id)
		}
	})
}

func storeNotDurable(d *document, report reporter) {
	eachLedger(d, func(e component) {
		store := e.get("store")
		text, _ := store.text()
		path, isFile := strings.CutPrefix(text, "sqlite:")
		if isFile && isBelowTemporary(path) {
			report(store, "choose a folder that outlives a restart of the machine, like sqlite:/var/lib/countersign/countersign.db",
				"exporter %s keeps its store in a folder that is emptied", e.id)
		}
	})
}

func filteredEvidence(d *document, report reporter) {
	for i := range d.pipelines {
		p := &d.pipelines[i]
		for _, e := range p.ledgers() {
			if !isEvidence(e) {
				continue
			}
			for _, o := range d.origins(p) {
				for _, processor := range o.passed {
					if processor.kind() == "filter" {
						report(processor.at, "remove it, and say in the condition of a rule of the evidence processor what becomes a fact",
							"processor %s drops records before %s, which writes evidence, in pipeline %s", processor.id, e.id, p.name)
					}
				}
			}
		}
	}
}

func sampledAway(d *document, report reporter) {
	for i := range d.pipelines {
		p := &d.pipelines[i]
		ledgers := p.ledgers()
		if len(ledgers) == 0 {
			continue
		}
		for _, o := range d.origins(p) {
			for _, processor := range o.passed {
				if ofKind("probabilisticsampler", "tailsampling", "logdedup")(processor) {
					report(processor.at, "sample in a pipeline of its own for the tracing backend, beside the one with the ledger",
						"processor %s drops telemetry before %s in pipeline %s", processor.id, ledgers[0].id, p.name)
				}
			}
		}
	}
}

// droppedOnError: the default of these processors is propagate.
func droppedOnError(d *document, report reporter) {
	for i := range d.pipelines {
		p := &d.pipelines[i]
		if len(p.ledgers()) == 0 {
			continue
		}
		for _, o := range d.origins(p) {
			for _, processor := range o.passed {
				mode := processor.get("error_mode")
				if ofKind("filter", "transform")(processor) && !processor.elsewhere() && (mode.empty() || mode.is("propagate")) {
					report(mode, "write error_mode: ignore", "processor %s passes errors on, before a ledger in pipeline %s", processor.id, p.name)
				}
			}
		}
	}
}

// fileReaders share their settings for reading on and for retries.
var fileReaders = ofKind("filelog", "journald", "windowseventlog", "otlpjsonfile")

func readerDoesNotWait(d *document, report reporter) {
	for _, r := range ledgerReceivers(d) {
		switch {
		case r.elsewhere():
		case r.kind() == "kafka":
			kafkaMarksEarly(r, report)
		case fileReaders(r):
			fileReaderForgets(r, report)
		}
	}
}

// ledgerReceivers feed a ledger, each once, in the order of the pipelines.
func ledgerReceivers(d *document) []used {
	var all []used
	for i := range d.pipelines {
		if len(d.pipelines[i].ledgers()) == 0 {
			continue
		}
		for _, o := range d.origins(&d.pipelines[i]) {
			if !slices.ContainsFunc(all, func(r used) bool { return r.id == o.receiver.id }) {
				all = append(all, o.receiver)
			}
		}
	}
	return all
}

func kafkaMarksEarly(r used, report reporter) {
	marking := r.get("message_marking")
	if marking.elsewhere() {
		return
	}
	if after := marking.get("after"); after.empty() || after.is("false") {
		report(after, "write message_marking: after: true", "receiver %s marks messages as read before the pipeline took them", r.id)
	}
	if onError := marking.get("on_error"); onError.is("true") {
		report(onError, "write on_error: false, with error_backoff enabled", "receiver %s marks messages as read that the pipeline refused", r.id)
	}
}

func fileReaderForgets(r used, report reporter) {
	retry := r.get("retry_on_failure")
	if retry.elsewhere() {
		return
	}
	if enabled := retry.get("enabled"); enabled.empty() || enabled.is("false") {
		report(enabled, "write retry_on_failure: enabled: true with max_elapsed_time: 0s", "receiver %s goes on when the pipeline refuses its lines", r.id)
	} else if most := retry.get("max_elapsed_time"); most.empty() {
		report(most, "write max_elapsed_time: 0s, which never gives up", "receiver %s gives up after five minutes", r.id)
	} else if text, ok := most.text(); ok && !isZero(text) {
		report(most, "write max_elapsed_time: 0s, which never gives up", "receiver %s gives up after %s", r.id, text)
	}
	if storage := r.get("storage"); storage.empty() {
		report(storage, "set storage: file_storage", "receiver %s forgets at a restart how far it had read", r.id)
	}
}
