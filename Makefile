# Every target sets itself up: the virtual environment is made on first use, with uv where present, else venv + pip.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
WORKERS ?= 3
unexport PYTHONDONTWRITEBYTECODE  # or every worker reads, rewrites and compiles every test anew

.PHONY: help setup demo test test-agents check prove bench docs format clean

help:            ## what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

setup: $(STAMP)  ## the virtual environment
$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && uv pip install --quiet --compile-bytecode --python $(BIN)/python -e '.[dev]'; \
	else \
	  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $(STAMP)

demo: $(STAMP)   ## the main job on a throw-away repository, start to accepted change
	@$(BIN)/steersman demo

test: $(STAMP)   ## everything that must hold, under ten minutes on two cores, and 100 % of the branches of kernel, machines and judges
	$(BIN)/python -m compileall -q src  # what tests start may not write it
	rm -f .coverage .coverage.*
	STEERSMAN_TEST_COVERAGE=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --fail-under=100

test-agents: $(STAMP) ## the real agent CLIs (installed into .cache/agents) against a scripted model; KEEP=--keep writes proofs/agents.json
	$(BIN)/python tests/agents/clis/install.py
	rm -rf .cache/agents/rows
	STEERSMAN_TEST_AGENTS=1 $(BIN)/python -m pytest -n 2 tests/agents; held=$$?; \
	$(BIN)/python -m tests.agents.table $(KEEP) && exit $$held

check: $(STAMP)  ## the one gate: format, lint, types, import contracts, tests with coverage, generated files
	$(BIN)/ruff format --check src tests bench proofs docs
	$(BIN)/ruff check src tests bench proofs docs
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m steersman machine lock --check
	$(BIN)/python -m steersman machine check
	$(BIN)/python -m docs.generate --check
	$(MAKE) test PYTEST_ADDOPTS=

prove: $(STAMP)  ## the long proofs; figures are kept in proofs/
	$(BIN)/python proofs/run.py

bench: $(STAMP)  ## against peers, in an environment of their own; ratios are kept in bench/results/
	bench/run
	$(BIN)/python bench/planning.py

docs: $(STAMP)   ## write the generated pages anew
	$(BIN)/python -m docs.generate

format: $(STAMP)
	$(BIN)/ruff format src tests bench proofs docs
	$(BIN)/ruff check --fix src tests bench proofs docs

clean:
	rm -rf $(VENV) bench/.venv
