.PHONY: help run test test-all lint release faults fuzz fmt bench bench-record report loadtest pgo show

help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Serve on 127.0.0.1:8080, with a Redis of its own unless REMIT_REDIS_URL is set
	./scripts/run.sh

test: ## Install what is missing, then check and test what a change needs (two cores: 9 minutes the first time, then 1 to 4)
	./scripts/test.sh

test-all: ## Check and test everything: also every fault, every test on a Redis Cluster, packaging, a browser, and 20 s of fuzzing each target
	./scripts/test.sh all

lint: ## Lint the Go code and the shell scripts; the first time builds golangci-lint
	./scripts/lint.sh

release: ## Build static binaries, Debian packages, bills of materials and sums into dist/; VERSION=1.2.3
	./scripts/release.sh

faults: ## Break Redis and the service under load, five times as often as make test-all; ARGS="-run Killed"
	go test -tags long -count=1 -timeout 60m -v ./test/faults -repeats 5 $(ARGS)

fuzz: ## Fuzz every target for 2 minutes, two at a time; FUZZTIME=10m, TARGETS=regexp
	FUZZTIME=$${FUZZTIME:-2m} ./scripts/fuzz.sh

fmt: ## Format the code
	gofmt -w .

bench: ## Measure the hot paths beside their floors, and compare with the last recorded run
	./scripts/bench.sh compare

bench-record: ## Measure the hot paths, and keep the run as the one to compare with
	./scripts/bench.sh record

report: ## Measure everything once, and write the tables and plots of docs/performance.md (about 8 minutes)
	./scripts/report.sh

loadtest: ## Run a fleet of agents against the service and reconcile its totals; ARGS="-scenario mixed"
	go run ./loadtest $(ARGS)

pgo: ## Record the CPU profile by which go build optimises the service: renews default.pgo (about 2 minutes)
	./scripts/pgo.sh

show: ## Print a Lua script as Redis gets it; SCRIPT=charge_session
	@go run ./scripts/show "$(SCRIPT)"
