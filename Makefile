# Everything that is done with this checkout; "make" prints it.
# It needs Python 3.11 or newer. Which one is decided when .venv is made: the newest of
# these, or yours: make PYTHON=python3.12 demo. "make clean" forgets it.

PYTHON ?= python3.13 python3.12 python3.11 python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# Tests start hundreds of processes, of which each would compile the whole app.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo demo-once test quick test-all test-slice browser conformance structure lint types check-migrations wheel docs bench screenshots messages clean

help: ## Print this.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.demo ## Run a small shop and its workers until Ctrl-C; DEMO_ARGS="--port 8001 --tasks".
	@$(BIN)/python -m testproject.demo $(DEMO_ARGS)

demo-once: $(VENV)/.demo ## Do all of the shop's work once, check it, and print a table.
	@$(BIN)/python -m testproject.demo --once $(DEMO_ARGS)

test: $(VENV)/.test browser ## Run all tests that a change needs; PYTEST_ARGS="tests/domain".
	$(PYTEST) $(PYTEST_ARGS)

quick: $(VENV)/.test ## Run those that start nothing, commit nothing and open no page.
	$(PYTEST) -m "not (slow or processes or servers or browser or commits or pages or dear)" $(PYTEST_ARGS)

test-all: $(VENV)/.test browser ## Run every test, storms and soaks included.
	$(PYTEST) -m "" $(PYTEST_ARGS)

test-slice: $(VENV)/.test browser ## Run a seventh of what "make test" leaves out, another one each day.
	$(PYTEST) -m slow --slice today/7 $(PYTEST_ARGS)

# Where none can be had, the tests that need one are skipped, except in CI.
browser: $(VENV)/.browser ## Get a Chromium for tests and screenshots, if none is installed.
	@$(BIN)/python -m testproject.browser

conformance: $(VENV)/.test ## Run Django's own tests of its Tasks framework; pip gets them.
	JOBQUEUE_CONFORMANCE=1 $(BIN)/python -m pytest tests/backends/conformance

structure: $(VENV)/.test ## Print how large the rooms are, and the files that a job's path crosses.
	$(BIN)/python -m pytest -q -s tests/architecture/test_structure.py

lint: $(VENV)/.test ## Check style and the directions of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: $(VENV)/.test ## Check the types.
	$(BIN)/mypy

# These settings have no database, of which Django would warn.
check-migrations: $(VENV)/.test ## Check that no change of a model lacks its migration.
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run \
	  --settings tests.static_settings

wheel: $(VENV)/.test ## Build the wheel and try it by itself, outside this checkout.
	rm -rf build dist
	$(BIN)/python -m build
	$(BIN)/python .ci/wheel.py dist

docs: $(VENV)/.docs ## Build the documentation in docs/_build/html.
	$(BIN)/sphinx-build -E -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.test ## Run the benchmarks; BENCH_ARGS.
	$(BIN)/python -m benchmarks $(BENCH_ARGS)

messages: $(VENV)/.test ## Gather the messages for translators and compile them; needs GNU gettext.
	cd django_jobqueue && ../$(BIN)/python -P -m django makemessages --all \
	  --no-location --no-obsolete --ignore "migrations/*"
	cd django_jobqueue && ../$(BIN)/python -P -m django compilemessages

screenshots: browser ## Take pictures of the admin for the documentation.
	$(BIN)/python -m testproject.screenshots

clean: ## Stop embedded servers and remove all that was made here.
	@if [ -e $(VENV)/.demo ] || [ -e $(VENV)/.test ]; then $(BIN)/python -m testproject.demo --clean; fi
	rm -rf $(VENV) .venv-bench .demo .cache .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache .tox build dist docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo: EXTRAS := demo
$(VENV)/.test: EXTRAS := test,lint
$(VENV)/.docs: EXTRAS := docs
$(VENV)/.browser: EXTRAS := browser

$(VENV)/.demo $(VENV)/.test $(VENV)/.docs $(VENV)/.browser: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(EXTRAS)]"
	@touch $@

$(VENV)/.made:
	@for python in $(PYTHON); do \
	  if $$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "$$python -m venv $(VENV)"; $$python -m venv --clear $(VENV) && touch $@; exit; \
	  fi; \
	done; \
	echo "Python 3.11 or newer with its venv module is needed; tried: $(PYTHON)."; \
	echo "Say where it is: make PYTHON=/usr/local/bin/python3.13 ..."; exit 1
