# Everything a person needs: make demo, make test. Everything the pipeline needs: make check.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3.11
BIN := .venv/bin
# Byte code is what makes the second start fast, so a global "do not write" is lifted here.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help install demo test test-slow test-crash check format bench clean

help:
	@echo "make demo     install, then take a real model on real data through every stage"
	@echo "make test     install, then run every test"
	@echo "make test-slow  the tests that start real servers and whole demos"
	@echo "make check    lint, types, layers"
	@echo "make bench    measure against the limits in infra/BENCHMARKS.md"
	@echo "make install  create .venv and the outlier detector's environment"
	@echo "make clean    remove both, and everything a demo left"

install: .venv/.installed
	@$(BIN)/python -m tasks.trust.environment $(if $(CAISSON_HOME),"$(CAISSON_HOME)/environments") >/dev/null

.venv/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "caisson: expected Python 3.11, found none as '$(PYTHON)'. Install it, or say: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install
	@$(BIN)/caisson demo $(ARGS)

# The threshold covers the rooms that decide; slow tests (real servers, whole demos) have a marker.
test: install
	@rm -f .coverage .coverage.*
	$(BIN)/pytest -n 2 --dist loadfile --cov --cov-report= $(ARGS)
	@for room in contracts model_packages tasks/release; do \
	  echo "coverage of $$room (branches counted, at least 92 %):"; \
	  $(BIN)/coverage report --include="$$room/*" --fail-under=92 || exit 1; \
	done

test-slow: install
	$(BIN)/pytest -n 2 --dist loadfile -m "slow and not gpu" --durations 15 $(ARGS)

test-crash: install
	$(BIN)/pytest -m crash $(ARGS)

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	@$(BIN)/python -m tests.bench.demo $(ARGS)

clean:
	rm -rf .venv .caisson build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
