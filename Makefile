# Every target installs what it needs on first use: with uv where it is on PATH, else with venv and pip.
# `make demo` needs Python and git alone, so its recipe uses no other program.
PYTHON    ?= python3
VENV      := .venv
BIN       := $(VENV)/bin
STAMP     := $(VENV)/.ready
INSTALLED := $(VENV)/.installed
WORKERS ?= 3
unexport PYTHONDONTWRITEBYTECODE  # or every worker reads, rewrites and compiles every test again

.PHONY: help setup demo test test-agents wheel-check check prove bench docs format clean

help:            ## list the targets
	@$(PYTHON) -c "import re; print(*re.findall('(?m)^[a-z-]+:.*##.*', open('Makefile').read()), sep='\n')"

# $(1) is what to install.
define install
if command -v uv >/dev/null 2>&1; then \
  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && uv pip install --compile-bytecode --python $(BIN)/python -e '$(1)'; \
else \
  $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --disable-pip-version-check --no-warn-script-location -e '$(1)'; \
fi
endef

setup: $(STAMP)  ## install steersman and the tools of a contributor into .venv
$(STAMP): pyproject.toml
	@echo "Installing steersman and its development tools into $(VENV)."
	@$(call install,.[dev])
	@: > $(INSTALLED)
	@: > $(STAMP)

$(INSTALLED): pyproject.toml
	@echo "Installing steersman into $(VENV). This happens once and takes about half a minute."
	@$(call install,.)
	@: > $(INSTALLED)

demo: $(INSTALLED) ## a whole run on a throw-away repository, from the task to an approved change
	@$(BIN)/steersman demo

test: $(STAMP)   ## everything that must hold, under ten minutes on two cores, and every branch of what decides (kernel, judges, tables)
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

wheel-check: $(STAMP) ## build the wheel, install it into an empty environment, and run the demo there
	$(BIN)/python proofs/run.py --quick wheel

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

docs: $(STAMP)   ## write the generated pages
	$(BIN)/python -m docs.generate

format: $(STAMP)
	$(BIN)/ruff format src tests bench proofs docs
	$(BIN)/ruff check --fix src tests bench proofs docs

clean:
	rm -rf $(VENV) bench/.venv
