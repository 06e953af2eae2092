# `make` prints what there is. CI runs nothing that `make` does not: see .ci/run.

.DEFAULT_GOAL := help

# Pure Go. Only the race detector needs a C compiler. One setting for all, so that the tests use what
# the build has compiled.
export CGO_ENABLED := 0
# One module, whatever workspace this checkout lies in.
export GOWORK := off

TOOLS     := $(CURDIR)/build/tools
COLLECTOR := build/collector

# Where threads meet: stores, sidecar, collector components.
RACE  := $(patsubst %,./%/...,$(wildcard ledger verifier receiver processor exporter))
# For make bench: which, how often, and where.
BENCH := .
COUNT := 6
PKG   := ./...

# Shows that a long compilation is alive: counts the packages of `go build -v`, shows all else, and
# ends as it ended.
COUNTED := awk ' \
	/^exit [0-9]+$$/ { status = $$2; next } \
	/^[^ :]+$$/ { if (++n % 100 == 0) { printf "  %d packages compiled\n", n; fflush() } next } \
	{ print; fflush() } \
	END { exit status }'

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: bin/countersign bin/countersign-collector ## the sidecar and the collector, into bin/ (first time: some four minutes on two cores)

.PHONY: demo
demo: build ## the whole story on this machine: telemetry in, verdicts out, a table, the page; leaves nothing
	@go run ./examples/demo run

.PHONY: up
up: build ## collector and sidecar on one SQLite file, left running; prints the addresses
	@go run ./examples/demo up

.PHONY: down
down: ## ends what make up started
	@go run ./examples/demo down

.PHONY: test
test: build ## every test; needs PostgreSQL 15 or newer installed, not running
	go test -C examples/temporal ./...
	go test -C internal/e2e/grafana ./...
	go test -C internal/e2e/sampling ./...
	go test ./...

.PHONY: test/contrib
test/contrib: ## examples/evidence with the receivers of contrib that they need: a module of its own (first time: some three minutes)
	go test -C examples/evidence/testdata/contrib -count 1 ./...

.PHONY: test/race
test/race: ## the tests of what runs concurrently, under the race detector (no browser); needs a C compiler
	CGO_ENABLED=1 go test -race -skip '^TestBrowser$$' $(RACE)

.PHONY: e2e-jaeger
e2e-jaeger: build $(TOOLS)/jaeger ## verdicts beside agents' spans in a real Jaeger (the first time some five minutes to compile it)
	go test -tags jaeger -count 1 ./internal/e2e -run TestJaeger -v

.PHONY: torture
torture: build ## sidecars and collectors that are killed, cut off and fed poison, some twenty minutes; docs/reliability.md has the figures
	go test ./internal/e2e -run 'TestKilledReplicas' -rounds 200 -v -timeout 30m
	COUNTERSIGN_TORTURE=1 go test ./internal/torture -count 1 -v -timeout 30m

.PHONY: e2e-node
e2e-node: build ## agents written with the AI SDK and OpenTelemetry JS, from npm ci to verdict; needs Node.js 20 or newer
	npm ci --prefix internal/e2e/node --no-audit --no-fund
	go test -tags node -count 1 ./internal/e2e -run TestNode -v

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## formatting, go vet, golangci-lint
	@files="$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go'))"; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	go vet ./...
	$(TOOLS)/golangci-lint run

.PHONY: generate
generate: $(TOOLS)/mdatagen ## what is generated and committed: component metadata, their documentation
	PATH="$(TOOLS):$$PATH" go generate ./...

.PHONY: verify
verify: generate ## fails if a committed generated file is not current
	@git diff --exit-code || { echo "generated files are not current: run make generate and commit"; exit 1; }
	@new="$$(git ls-files --others --exclude-standard)"; \
	if [ -n "$$new" ]; then echo "not committed: run make generate and commit"; echo "$$new"; exit 1; fi

.PHONY: bench
bench: $(TOOLS)/benchstat ## benchmarks (BENCH=regexp COUNT=n PKG=./...), compared with build/bench.base.txt if that exists
	@mkdir -p build
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PKG) > build/bench.txt || { cat build/bench.txt; exit 1; }
	@if [ -f build/bench.base.txt ]; then $(TOOLS)/benchstat build/bench.base.txt build/bench.txt; else $(TOOLS)/benchstat build/bench.txt; fi

.PHONY: bench/settle
bench/settle: ## settling on PostgreSQL: throughput beside the evaluation alone and beside River's no-op jobs, latency, 10,000 waiters
	go test ./verifier/settle -run '^$$' -bench '^BenchmarkSettle' -benchtime 2x -timeout 30m
	go test -C internal/benchpeers -run '^$$' -bench RiverJobs -benchtime 2x
	go test ./verifier/serve -run '^$$' -bench Waiters -benchtime 1x -timeout 30m

.PHONY: bench/peers
bench/peers: ## the engine beside general policy engines, the processor beside contrib's transform: modules of their own
	go test -C internal/benchpeers -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) ./...
	go test -C internal/benchpeers/processors -run '^$$' -bench '$(BENCH)' -count $(COUNT) ./...

.PHONY: bench/ingest
bench/ingest: build ## OTLP into PostgreSQL beside a debug exporter and plain CopyFrom: items/s, CPU, memory (Linux)
	go test -tags speed ./internal/torture -run 'TestSpeed|TestMemory' -count 1 -timeout 20m -v

.PHONY: clean
clean: ## removes bin/ and build/
	rm -rf bin build

# Go's own cache knows best what has to be compiled again, so these are asked every time.
bin/countersign: FORCE
	@echo "building $@"
	@{ go build -v -o $@ ./cmd/countersign 2>&1; echo "exit $$?"; } | $(COUNTED)

# -mod=mod: code of ours may import a module of go.mod that the collector did not need before.
bin/countersign-collector: $(COLLECTOR)/go.sum FORCE
	@echo "building $@"
	@[ -e $@ ] || echo "  the first time this compiles some 1,000 packages"
	@{ go build -C $(COLLECTOR) -mod=mod -v -ldflags='-s -w' -o $(CURDIR)/$@ . 2>&1; echo "exit $$?"; } | $(COUNTED)

# The builder writes the sources, the rule above compiles them. -e: others' tests may need modules
# that cannot be had; nothing here compiles them.
$(COLLECTOR)/go.sum: builder-config.yaml go.mod go.sum $(TOOLS)/builder
	@echo "collecting the modules of builder-config.yaml into $(COLLECTOR)"
	@GOFLAGS="$$(go env GOFLAGS) -e" $(TOOLS)/builder --config builder-config.yaml --skip-compilation \
		--skip-strict-versioning=false > build/builder.log 2>&1 || { cat build/builder.log; exit 1; }
	@touch $@

$(TOOLS)/jaeger: internal/e2e/jaeger/go.mod internal/e2e/jaeger/go.sum
	@mkdir -p $(TOOLS)
	@echo "building jaeger, as internal/e2e/jaeger/go.mod says"
	@{ go build -C internal/e2e/jaeger -v -o $@ github.com/jaegertracing/jaeger/cmd/jaeger 2>&1; echo "exit $$?"; } | $(COUNTED)
	@touch $@

$(TOOLS)/golangci-lint: MODULE := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/builder:       MODULE := go.opentelemetry.io/collector/cmd/builder
$(TOOLS)/mdatagen:      MODULE := go.opentelemetry.io/collector/cmd/mdatagen
$(TOOLS)/benchstat:     MODULE := golang.org/x/perf/cmd/benchstat

$(TOOLS)/golangci-lint $(TOOLS)/builder $(TOOLS)/mdatagen $(TOOLS)/benchstat: internal/tools/go.mod internal/tools/go.sum
	@mkdir -p $(TOOLS)
	@echo "building $(notdir $@), as internal/tools/go.mod says"
	@{ go build -C internal/tools -v -o $@ $(MODULE) 2>&1; echo "exit $$?"; } | $(COUNTED)
	@touch $@

.PHONY: FORCE
FORCE:
