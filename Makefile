# Moorage's commands. `make` alone lists them; `demo`, `test` and `check` need nothing but Python 3.11 or later.

FIND_PYTHON = for python in python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$python && break; done
PYTHON ?= $(shell $(FIND_PYTHON))
BIN := .venv/bin
SEED ?= 7
SEEDS ?= 1000
EXAMPLES ?= 1000
MINUTES ?= 30
SCALE ?= 1
FIRST ?= 0
# For tests that take as long as the command says.
HOURS := --timeout 7200 -o faulthandler_timeout=14400

.DEFAULT_GOAL := help
.PHONY: help demo test lowest pythons browser kubectl check fmt parity sim storms campaign same histories bugs mutants properties tables roles soak bench load docs pictures

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed ## Schedule the pods of a small example cluster, then explain why one of them is pending
	$(BIN)/moorage simulate -f examples/demo
	$(BIN)/moorage explain analytics/quarterly-report-0 -f examples/demo
	@printf '\nMoorage is in $(BIN). To go on with docs/tutorial.md in this terminal, type:\n\n  . $(BIN)/activate\n'

# The tests start a hundred processes; without bytecode on disk each would compile Moorage again.
test: .venv/.ready kubectl browser ## Run every test, as CI does
	env -u PYTHONHASHSEED -u PYTHONDONTWRITEBYTECODE $(BIN)/pytest -n 2 --dist worksteal -r s

lowest: ## Run a quick part of the tests with the lowest versions that pyproject.toml allows, on Python 3.11
	@sh tests/quick.sh 3.11 lowest

pythons: ## Run a quick part of the tests with Python 3.12 and 3.13, where they are installed
	@sh tests/quick.sh 3.12
	@sh tests/quick.sh 3.13

browser: ## Install Chromium for the tests of HTML pages, if it is missing (needs root and apt-get)
	@sh tests/install.sh "chromium chromedriver" chromium chromium-driver fonts-dejavu-core

check: .venv/.ready ## Lint, formatting, types and import contracts, in seconds
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: .venv/.ready ## Format the code and apply the automatic fixes of ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

parity: .venv/.ready ## Compare decisions with those recorded from kube-scheduler
	$(BIN)/pytest tests/parity

sim: .venv/.ready ## Run one seed of the fault simulation: make sim SEED=7
	MOORAGE_SEED=$(SEED) $(BIN)/python -m pytest tests/simulation/test_faults.py tests/live/test_whole_system.py

storms: .venv/.ready ## Run many seeds of the fault simulation: make storms SEEDS=1000
	MOORAGE_SEEDS=$(SEEDS) $(BIN)/pytest -n 2 tests/simulation/test_faults.py tests/simulation/test_volumes.py \
	  tests/simulation/test_preemption_storms.py tests/plugins/default_preemption/test_twins.py \
	  tests/live/test_whole_system.py

campaign: .venv/.ready ## Run 10,000 seeds of all storms, with totals; an interrupted run goes on: make campaign SCALE=0.01 FIRST=0
	$(BIN)/python tools/campaign.py --scale $(SCALE) --first $(FIRST)

histories: .venv/.ready ## Check concurrent clients of serve, and its data after power cuts: make histories SEEDS=200
	MOORAGE_SEEDS=$(SEEDS) $(BIN)/pytest -n 2 tests/serve/rest/test_histories.py tests/serve/test_power_cuts.py

bugs: .venv/.ready ## See how many seeds of the simulation each bug of tools/hand_made_bugs.py needs to be found
	$(BIN)/python tools/mutants.py --bugs

mutants: .venv/.ready ## Change 200 places of core and the leader election, one at a time, and see which tests fail; make mutants FILES='nodes/*.py'
	$(BIN)/python tools/mutants.py $(FILES)

same: .venv/.ready ## Compare decisions with another commit's on random simulations: make same BASE=COMMIT SEEDS=200
	$(BIN)/python tools/same_decisions.py --base $(BASE) --seeds $(SEEDS)

properties: .venv/.ready ## Run the property tests with many examples: make properties EXAMPLES=1000
	MOORAGE_EXAMPLES=$(EXAMPLES) $(BIN)/pytest -n 2 $(HOURS) tests/properties tests/api tests/planning tests/serve/rest

tables: .venv/.ready ## Write the tables of states and transitions into docs/architecture.md
	UPDATE_DOCS=1 $(BIN)/pytest -q tests/core/test_transitions.py

roles: .venv/.ready ## Write the RBAC roles of the deployed scheduler
	$(BIN)/moorage config rbac --config deploy/base/config.yaml > deploy/base/roles.yaml
	$(BIN)/moorage config rbac --config deploy/shadow/config.yaml --shadow --name moorage-shadow > deploy/shadow/roles.yaml

soak: .venv/.ready ## Run a live scheduler on a cluster with constant changes, and with default leases: make soak MINUTES=30
	MOORAGE_LONG=1 $(BIN)/pytest tests/live/test_replicas.py tests/live/test_devices.py
	$(BIN)/python tests/live/soak.py churn --minutes $(MINUTES)

bench: .venv/.ready ## Measure pods per second: make bench SHAPES="basic taints" BASE=COMMIT; all shapes, no comparison without
	$(BIN)/moorage bench $(if $(BASE),--compare $(BASE)) $(SHAPES)

load: .venv/.ready ## Create 1,000 nodes and 5,000 pods in `moorage serve` over HTTP
	MOORAGE_LOAD=full $(BIN)/pytest -s $(HOURS) tests/serve/live/test_load.py

docs: .venv/.docs-ready browser ## Build the documentation into site/, and open every page in Chromium
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/pytest -r s tests/docs/test_site.py

pictures: .venv/.ready browser ## Make the pictures of the documentation from the real program
	$(BIN)/python tools/pictures.py

kubectl: ## Install kubectl for the tests of `moorage serve`, in the same way
	@sh tests/install.sh kubectl kubernetes-client

# The stamps: the virtual environment has Moorage, and what pyproject.toml lists for developers.
.venv/.installed: pyproject.toml
	@test -n "$(PYTHON)" || { echo "Moorage needs Python 3.11 or later, with venv; none found. Name one: make PYTHON=..." >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --editable .
	@touch $@

.venv/.ready: .venv/.installed
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

.venv/.docs-ready: .venv/.ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	@touch $@
