.PHONY: help run test fmt bench loadtest

help: ## Show what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: ## Serve on 127.0.0.1:8080, with a Redis of its own unless REMIT_REDIS_URL is set
	go run .

test: ## Install what is missing, then check and test everything on miniredis, Redis and Redis Cluster
	./scripts/test.sh

fmt: ## Format the code
	gofmt -w .

bench: ## Measure the hot paths, each beside its floor in the same run
	go test -run '^$$' -bench . -benchtime 40000x ./bench

loadtest: ## Run a fleet of agents against a service of its own and check the books; ARGS="-scenario mixed"
	go run ./loadtest $(ARGS)
