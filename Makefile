# Everything that is done with this checkout; "make" prints it.
# It needs Python 3.11 or newer and nothing else: make PYTHON=python3.13 demo

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo demo-once test lint types docs bench clean

help: ## Print this.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.demo ## Run the shop and its workers until Ctrl-C; DEMO_ARGS="--port 8001".
	@$(BIN)/python -m testproject.demo $(DEMO_ARGS)

demo-once: $(VENV)/.demo ## Do all of the shop's work once, check it, and print a table.
	@$(BIN)/python -m testproject.demo --once $(DEMO_ARGS)

test: $(VENV)/.test ## Run the tests; PYTEST_ARGS="-n 2 tests/words".
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

lint: $(VENV)/.test ## Look at style and at the directions of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.test ## Check the types.
	$(BIN)/mypy

docs: $(VENV)/.docs ## Build the documentation in docs/_build/html.
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.test ## Run the benchmarks; BENCH_ARGS.
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

clean: ## Stop embedded servers and remove all that was made here.
	@if [ -e $(VENV)/.demo ] || [ -e $(VENV)/.test ]; then $(BIN)/python -m testproject.demo --stop; fi
	rm -rf $(VENV) .demo .cache .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
	  .ruff_cache build dist docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo: EXTRAS := demo
$(VENV)/.test: EXTRAS := test,lint
$(VENV)/.docs: EXTRAS := docs

$(VENV)/.demo $(VENV)/.test $(VENV)/.docs: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@

$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is not installed; say which Python to use: make PYTHON=python3.13"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("$(PYTHON) is Python %d.%d; this needs 3.11 or newer: make PYTHON=python3.13" % sys.version_info[:2])'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@
