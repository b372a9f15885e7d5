# The one list of chores.  All it needs is a Python >= 3.12 (and not 3.13.0), which
# scripts/find-python looks for; PYTHON=/path/to/python asks for a certain one.

N ?= 1000
PORT ?= 8080
DATA ?= demo-data
ZONE ?= Europe/Berlin
SUITE ?= all
JOBS ?= 2
PAGE ?=
# Files and folders of tests; those with long tests first, so that no process is left alone with one at the end.
TESTS ?= $(wildcard tests/acceptance tests/property tests/integration tests/unit)
PYTEST_ARGS ?=
SEQUENCES ?= 50
DIFF_ARGS ?= --seed 1
T ?= pgbouncer
VOLTO_PORT ?= 3000
VOLTO_DATA ?= demo-data/volto
TOPOLOGY_ARGS ?=
POOLER_ARGS ?=
MEANING_ARGS ?=
KNOWN_ITEMS_ARGS ?=
MATRIX_ARGS ?=
SOAK_ARGS ?=
FAILS_ARGS ?=
BENCH_ARGS ?= level2 --docs 500 --iterations 50 --warmup 5

# The add-ons that are judges would be loaded by all other tests, too.
VENV := $(if $(filter addons,$(SUITE)),.venv-addons,.venv)
BIN := $(VENV)/bin
UV := .tools/bin/uv
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(TESTS)
PIP := $(UV) pip install --python $(BIN)/python --constraint constraints.txt --override overrides.txt

export PYTHON
export UV_PYTHON_DOWNLOADS := never
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
# Each of many processes would compile Plone anew.
unexport PYTHONDONTWRITEBYTECODE
# A user without a home (nobody, a container) keeps the caches in the checkout.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export XDG_CACHE_HOME := $(CURDIR)/.cache
endif

# What each chore installs: one stamp per set, renewed when the requirements change.
SET_demo := --editable '.[files,meaning,metrics]' --group demo
SET_test := --editable '.[files,meaning,metrics]' --group test
SET_lint := $(SET_demo) --group lint
SET_docs := $(SET_demo) --group docs
SET_bench := $(SET_test) --group bench
SET_suites := $(SET_test) --group suites

.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.PRECIOUS: $(VENV)/.installed-%
.PHONY: help install demo start console demo-check volto test test-slow test-volto test-plone test-zodb test-pooler differential
.PHONY: bench bench-page bench-ranking bench-meaning bench-compounds bench-known-items bench-corrections
.PHONY: topology soak fails histories matrix
.PHONY: lint format docs clean

help:
	@awk -F':.*## ' '/^## / {print "\n" substr($$0, 4)} \
		/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

## To try the catalog:

demo: $(VENV)/.installed-demo  ## a Plone site with N=1000 objects in ZONE=Europe/Berlin on PORT=8080, kept in the folder DATA=demo-data
	$(BIN)/python -m demo --objects $(N) --zone '$(ZONE)' --port $(PORT) --data '$(DATA)'

start: $(VENV)/.installed-demo  ## serve the demo's site in DATA as it is, on PORT
	$(BIN)/python -m demo --start --port $(PORT) --data '$(DATA)'

console: $(VENV)/.installed-demo  ## Python in the demo's site in DATA: app, portal, catalog
	$(BIN)/python -m demo --console --data '$(DATA)'

demo-check: $(VENV)/.installed-demo  ## start the demo, ask it some questions, stop it
	$(BIN)/python -m demo --check --objects $(N) --zone '$(ZONE)'

volto: $(VENV)/.installed-demo  ## Volto on VOLTO_PORT=3000, built once, beside a demo of its own (N=, PORT=, VOLTO_DATA=); needs node and npm
	$(BIN)/python -m demo --volto $(VOLTO_PORT) --objects $(N) --port $(PORT) --data '$(VOLTO_DATA)'

## To work on it:

install: $(VENV)/.installed-test  ## make .venv with the package and what its tests need

test: $(VENV)/.installed-bench  ## our tests but the long ones, on an embedded PostgreSQL (TESTS=tests/unit, PYTEST_ARGS=...)
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/.installed-bench  ## the long ones: benchmarks, command line, demo, browser, many random cases
	$(PYTEST) -m slow $(PYTEST_ARGS)

test-plone: $(VENV)/.installed-$(if $(filter addons,$(SUITE)),addons,suites)  ## suites of Plone (SUITE=quick, medium, all) and of add-ons (addons), next to ZCatalog's results
	$(BIN)/python -m checks.plone_suites check --suite $(SUITE) --jobs $(JOBS) \
		$(if $(PAGE),--page '$(PAGE)' --command 'make test-plone SUITE=$(SUITE) PAGE=$(PAGE)')

test-zodb: $(VENV)/.installed-test  ## ZODB's own tests of storages with and without this package, and the table in docs/reference/zodb-suites.md
	$(BIN)/python -m checks.zodb_suites

differential: $(VENV)/.installed-test  ## random queries (N=1000) and write sequences, next to a real ZCatalog
	$(BIN)/python -m checks.differential --queries $(N) --sequences $(SEQUENCES) $(DIFF_ARGS)

bench: $(VENV)/.installed-bench  ## the benchmark against ZCatalog (BENCH_ARGS=...)
	$(BIN)/python benchmarks/run_benchmarks.py $(BENCH_ARGS)

bench-page: $(VENV)/.installed-bench  ## the figures of README and documentation, from the stored results
	$(BIN)/python benchmarks/run_benchmarks.py report benchmarks/results --pages

bench-ranking: $(VENV)/.installed-bench  ## how much of ZCatalog's ranking is ours, and the table in docs/explanation/ranking.md
	$(BIN)/python -m benchmarks.ranking --output benchmarks/results/ranking.json --page docs/explanation/ranking.md

bench-known-items: $(VENV)/.installed-bench  ## how often a search finds the page that it is about, and the tables in docs/explanation/ranking.md (KNOWN_ITEMS_ARGS=...)
	$(BIN)/python -m benchmarks.known_items --output benchmarks/results/known_items.json --page docs/explanation/ranking.md $(KNOWN_ITEMS_ARGS)

bench-compounds: $(VENV)/.installed-bench  ## how many compounds are split right, and the table in docs/how-to/compounds.md; needs manpages-de
	$(BIN)/python -m benchmarks.compounds --output benchmarks/results/compounds.json --page docs/how-to/compounds.md

bench-corrections: $(VENV)/.installed-bench  ## how many mistyped words are corrected right, and the table in docs/how-to/suggestions.md
	$(BIN)/python -m benchmarks.corrections --output benchmarks/results/corrections.json --page docs/how-to/suggestions.md

bench-meaning: $(VENV)/.installed-bench  ## how many questions find their page by words, by vectors, by both (MEANING_ARGS=...)
	$(BIN)/python -m benchmarks.meaning --output benchmarks/results/meaning.json $(MEANING_ARGS)

test-volto: $(VENV)/.installed-bench  ## the add-on for Volto, and a browser that visits Volto on both catalogs; needs node and npm (PYTEST_ARGS=...)
	$(BIN)/python -m pytest checks/volto $(PYTEST_ARGS)

test-pooler: $(VENV)/.installed-bench  ## the integration tests through PgBouncer, and the table in docs/how-to/pgbouncer.md (POOLER_ARGS=...)
	$(BIN)/python -m checks.through_pooler $(POOLER_ARGS)

topology: $(VENV)/.installed-bench  ## several machines on this one, and what they ask the servers (T=pgbouncer, standby, failover, patroni)
	$(BIN)/python -m checks.topology $(T) $(TOPOLOGY_ARGS)

soak: $(VENV)/.installed-bench  ## ten minutes of load on a site whose PostgreSQL is killed meanwhile; SOAK_ARGS='--mixed --seconds 7200' for much more
	$(BIN)/python -m checks.soak $(SOAK_ARGS)

matrix: $(VENV)/.installed-bench  ## Python 3.12 to 3.14 with PostgreSQL 15 to 18, in Debian roots of their own (MATRIX_ARGS=...)
	$(BIN)/python -m checks.matrix $(MATRIX_ARGS)

fails: $(VENV)/.installed-bench  ## saves, moves, packs, undos, jobs whose messages to PostgreSQL fail one by one (FAILS_ARGS=...)
	$(BIN)/python -m checks.fails $(FAILS_ARGS)

histories: $(VENV)/.installed-bench  ## processes that append to lists and read them, over a failover, and the anomalies (FAILS_ARGS=...)
	$(BIN)/python -m checks.fails.histories $(FAILS_ARGS)

lint: $(VENV)/.installed-lint  ## style, language, types, imports between the rooms
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/zpretty --check src
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.language

format: $(VENV)/.installed-lint  ## rewrite the sources in the project's style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/zpretty --inplace src

docs: $(VENV)/.installed-docs  ## the documentation as HTML in docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

clean:  ## remove what the chores made (the demo's data stay)
	rm -rf .venv .venv-addons .tools .cache .matrix build dist docs/_build
	rm -rf $(addprefix frontend/,node_modules build cache public theme)
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .tox
	find src tests checks benchmarks demo -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV):
	python=$$(scripts/find-python) && "$$python" -m venv --clear .tools
	.tools/bin/python -m pip install --quiet uv

$(BIN)/python: | $(UV)
	python=$$(scripts/find-python) && $(UV) venv --quiet --clear --python "$$python" $(VENV)

ADDONS := checks/plone_suites/addons.txt
SDISTS := checks/plone_suites/sdists.txt
$(VENV)/.installed-addons: $(ADDONS) $(SDISTS) constraints.txt | $(VENV)/.installed-suites
	$(UV) pip install --python $(BIN)/python --no-deps --requirement $(ADDONS)
	rm -rf $(VENV)/sdists
	.tools/bin/python -m pip download --quiet --no-deps --no-binary :all: --constraint constraints.txt \
		--dest $(VENV)/sdists --requirement $(SDISTS)
	for archive in $(VENV)/sdists/*.tar.gz; do tar -xzf "$$archive" -C $(VENV)/sdists || exit 1; done
	@touch $@

$(VENV)/.installed-%: pyproject.toml scripts/version.py constraints.txt overrides.txt | $(UV) $(BIN)/python
	$(PIP) $(SET_$*)
	@touch $@
