# Everything here needs Python 3.11 or newer and pip; only the MySQL of the tests may need root.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --editable
OPENAPI := openapi/openapi.json

RUNTIME := $(VENV)/.installed
PIPELINE := $(VENV)/.installed-pipeline
TEST := $(VENV)/.installed-test
DEV := $(VENV)/.installed-dev
BENCH := $(VENV)/.installed-bench

.DEFAULT_GOAL := help
# Two targets must not run pip in one environment at once.
.NOTPARALLEL:

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: install
install: $(RUNTIME) ## Install the service into .venv

.PHONY: install-pipeline
install-pipeline: $(PIPELINE) ## Install the service and the pipeline into .venv

.PHONY: run
run: $(RUNTIME) ## Run the service
	$(BIN)/leasemq serve

.PHONY: test
test: $(TEST) ## Run the tests on every database there is
	$(BIN)/pytest --numprocesses 3

.PHONY: servers
servers: $(TEST) ## Run the tests' PostgreSQL and MySQL, and print their URLs
	$(BIN)/python -m tests.servers

.PHONY: bench
bench: $(BENCH) ## Measure everything, or SCENARIO="single batch"; BENCH_FLAGS=--quick, --full, --publish
	$(BIN)/python -m bench $(if $(SCENARIO),--only $(SCENARIO)) $(BENCH_FLAGS)

.PHONY: bench-pipeline
bench-pipeline: $(BENCH) ## Measure the pipeline, or SCENARIO="reading archiving"; BENCH_FLAGS=--quick, --publish
	$(BIN)/python -m bench.pipeline $(if $(SCENARIO),--only $(SCENARIO)) $(BENCH_FLAGS)

.PHONY: lint
lint: $(DEV) ## Check format and style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

.PHONY: format
format: $(DEV) ## Format the code, and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: types
types: $(DEV) ## Check the types
	$(BIN)/mypy

.PHONY: imports
imports: $(DEV) ## Check the direction of imports
	$(BIN)/lint-imports

.PHONY: openapi
openapi: $(RUNTIME) ## Write the OpenAPI document
	@mkdir -p $(dir $(OPENAPI))
	$(BIN)/leasemq openapi --output $(OPENAPI)

.PHONY: openapi-check
openapi-check: $(RUNTIME) ## Check that the OpenAPI document is in step with the service
	$(BIN)/leasemq openapi --check $(OPENAPI)

.PHONY: check
check: lint types imports openapi-check test ## Run every check, then the tests

.PHONY: clean
clean: ## Remove what was installed, built and cached here
	rm -rf $(VENV) .venv-bench dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(RUNTIME): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) .
	@touch $@

$(PIPELINE): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) '.[pipeline]'
	@touch $(RUNTIME) $@

$(TEST): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) '.[test]'
	@touch $(RUNTIME) $(PIPELINE) $@

$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) '.[dev]'
	@touch $(RUNTIME) $(PIPELINE) $(TEST) $@

$(BENCH): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) '.[bench]'
	@touch $(RUNTIME) $(PIPELINE) $(TEST) $@
