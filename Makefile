# Every target sets up what it needs: a virtual environment in .venv with the pinned versions.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help setup demo test test-slow test-browser lint bench clean

help:
	@echo "make demo       install, make data, train, show the result (four minutes on two cores)"
	@echo "make test       install, run the tests"
	@echo "make test-slow  the minutes-long verifications"
	@echo "make test-browser the page in Chromium, where there is one"
	@echo "make lint       format, style, the direction of imports, types"
	@echo "make bench      speed ratios"

setup: $(READY)

# Removing .venv/.ready (or changing what is pinned) installs again.
$(READY): pyproject.toml constraints.txt
	$(if $(shell command -v $(PYTHON)),$(PYTHON),python3) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	@touch $(READY)

demo: $(READY)
	rm -rf runs/demo
	$(BIN)/lrsa train darcy --scale demo --out runs/demo

# Two processes of one thread each: small models gain nothing from more. Many tests start the command, which bytecode
# spares a compilation, whatever the machine says about writing it.
test: $(READY)
	OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

test-browser: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m browser

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/basedpyright

bench: $(READY)
	$(BIN)/lrsa bench

clean:
	rm -rf .venv build dist src/*.egg-info .pytest_cache .ruff_cache
