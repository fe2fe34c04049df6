# Flott. `make help` lists the targets; each works on a machine that has make, git, a Go from 1.21 on, and a Go module
# proxy: the toolchain below is fetched and checked by the go command itself, like any module.

export GOTOOLCHAIN := go1.27.3

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Arguments of the program behind `run` and `bench`: make run ARGS="README.md", make bench ARGS="-json".
ARGS ?=

.PHONY: help run test check check-servers soak bench fmt tidy api

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Run the main job: a streaming word count over the Go tree's own sources (ARGS: files, folders, globs or -)
	go run ./examples/wordcount $(ARGS)

test: ## Run every test of every module, once, without servers
	@. scripts/lib.sh && go test $$(patterns)

check: ## Everything a change must pass, hermetic: format, vet, staticcheck, lint, tests, race, invariants, cost, fuzz smoke
	@scripts/check.sh

check-servers: ## The tests that need real servers (build tag servers; see test/servers)
	@scripts/servers.sh

soak: ## Hours, not minutes: many seeds, repeated race runs, long fuzzing, the mutation check
	@scripts/soak.sh

bench: ## Measure the core against hand-written loops (ARGS: -json, other flags of the program)
	go run ./bench -suite core $(ARGS)

fmt: ## Format every Go file with the pinned gofumpt
	@. scripts/lib.sh && $$(tool gofumpt) -l -w .

tidy: ## Tidy the go.mod of every module, and that of the tools
	@. scripts/lib.sh && for m in $$(modules) tools; do echo "$$m"; GOWORK=off go -C "$$m" mod tidy || exit 1; done

api: ## Rewrite docs/api.txt, the reviewed list of the public API, from the code
	go test ./internal/lint -count=1 -run '^TestPublicAPI$$' -rewrite
