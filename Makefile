# Every target sets up what it needs, once: a virtual environment from hash-pinned locks. `make` alone lists them.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
VENV := .venv
TIME ?= 8h
PYTEST ?= pytest
SIZE ?= ci
# Tests of processes and browsers wait for 40 % of their time: two workers for each core keep the cores busy. A worker
# gets tests that stand together, so that browsers, built sites and servers of models start once, not once per worker.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2) * 2)))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# uv takes a seventh of the time of pip. It does not read the configuration of pip, which knows where packages are in
# closed networks.
install = $(BIN)/uv pip install --quiet --python $(BIN)/python $(1) || { \
	echo "uv failed; pip installs the packages, with the indexes and certificates of its configuration" >&2; \
	$(PIP) install --quiet $(1); }
COMPILE := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links --no-strip-extras --quiet
LOCK := $(COMPILE) pyproject.toml --extra build
# Every test process and every `pointsman` that tests start would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# The checker is pinned by the lock: it need not look for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

# A script of web/package.json; where `make ui` found no Node, it says that it is left out.
npm = if test -d web/node_modules; then echo "npm run $(1)" && cd web && npm run --silent $(1); \
	else echo "npm run $(1) is left out: there is no Node, or npm has not run (make ui)"; fi

# The modules whose types depend on the operating system, a tenth of all: their check takes 30 s of a processor for each
# system, that of all modules takes minutes.
OF_SYSTEM = grep -rlE --include='*.py' \
	'^\s*(import|from) (_winapi|ctypes|fcntl|grp|mmap|msvcrt|multiprocessing|os|pty|pwd|resource|select|selectors|signal|socket|subprocess|termios|tty)\b|asyncio.*unix|time\.(clock_|CLOCK_)|sys\.platform' \
	src/pointsman

.DEFAULT_GOAL := help
.PHONY: help demo test test-unit test-scale test-pythons test-core test-web check static house lint ui docs pictures screenshots types bench bench-peers bench-growth \
	bench-instructions bench-scale bench-check reliability fuzz soak requirements lock clean

help:
	@echo "make demo          real workflows, offline"
	@echo "make test-unit     the unit tier: pure and in memory, seconds, for every edit"
	@echo "make test          unit and integration tests, and the web app in a browser; the house rules are in make check"
	@echo "make test-scale    clusters: Temporal, Restate and PostgreSQL, killed and cut off; all of it: make test-scale SIZE=full"
	@echo "make test-pythons  the unit tier on every Python from 3.11 that this machine has"
	@echo "make test-core     the wheel without extras, in a fresh environment"
	@echo "make check         lint, format, types, walls between modules, house rules"
	@echo "make static        the part of make check that runs no test"
	@echo "make house         the part of make check that runs tests: house rules"
	@echo "make lint          lint and format only, and the style and types of the web app"
	@echo "make test-web      the tests of the web app that need no browser"
	@echo "make ui            the web app, where Node is there"
	@echo "make docs          the documentation site, which pointsman serve serves at /docs/"
	@echo "make pictures      the pictures of the concept pages, from their definitions"
	@echo "make screenshots   the screenshots of the documentation, by a browser without a window"
	@echo "make types         the types of the web app, from the server's OpenAPI document"
	@echo "make bench         what a step costs, through the public API and in the engine alone"
	@echo "make bench-peers   the same shapes beside other products, each in an environment of its own"
	@echo "make bench-growth  a server with thousands of open executions, streams, subscribers and schedules"
	@echo "make bench-scale   an execution on Temporal and Restate beside one server, hand-over, parked executions"
	@echo "make bench-instructions  machine instructions per call of a node function, counted by valgrind"
	@echo "make bench-check   what reading and checking a document cost for each node"
	@echo "make reliability   the scorecard: what tries to lose, repeat or corrupt something, and what it found"
	@echo "make fuzz          schemathesis over the API: what its document allows, and what it does not"
	@echo "make soak          the same in turns for TIME (8h): make soak TIME=5m"
	@echo "make requirements  docs/reference/requirements.md: which test proves which promise"
	@echo "make lock          compile requirements/*.lock from pyproject.toml"
	@echo "make clean         remove the virtual environment and caches"

demo: $(VENV)/runtime.stamp ui
	@$(BIN)/pointsman demo

test-unit: $(VENV)/dev.stamp
	$(BIN)/python -m pytest --tier unit -n auto -q $(ARGS)

test-pythons: $(VENV)/dev.stamp
	$(BIN)/python -m tests.pythons $(ARGS)

test-core: $(VENV)/dev.stamp ui
	$(BIN)/python -m tests.core_install $(ARGS)

test: $(VENV)/dev.stamp $(VENV)/postgresql.stamp $(VENV)/bubblewrap.stamp $(VENV)/nginx.stamp $(VENV)/llama.stamp $(VENV)/chromium.stamp $(VENV)/interop.stamp ui
	$(if $(ARGS),,@$(call npm,test))
	$(BIN)/python -m $(PYTEST) -n $(WORKERS) --dist worksteal --ignore=tests/house $(ARGS)

test-scale: $(VENV)/dev.stamp $(VENV)/postgresql.stamp $(VENV)/temporal.stamp $(VENV)/restate.stamp
	$(BIN)/python -m $(PYTEST) --tier scale --size $(SIZE) -n $(WORKERS) $(ARGS)

test-web: ui
	@$(call npm,test)

check: static house

static: lint $(VENV)/interop.stamp
	$(BIN)/pyright
	$(OF_SYSTEM) | $(BIN)/pyright --pythonplatform Darwin -
	$(OF_SYSTEM) | $(BIN)/pyright --pythonplatform Windows -
	$(BIN)/lint-imports --no-logo

house: $(VENV)/dev.stamp ui
	$(BIN)/python -m pytest tests/house -q -n $(WORKERS) --dist loadfile

lint: $(VENV)/dev.stamp ui
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@$(call npm,check)

# Says so where there is no Node; a build takes half a minute, once for each change in web/.
ui: $(VENV)/pip.stamp
	@test -e $(VENV)/dev.stamp -o -e $(VENV)/runtime.stamp || $(MAKE) --no-print-directory $(VENV)/runtime.stamp
	@$(BIN)/python hatch_build.py

docs: $(VENV)/dev.stamp
	$(BIN)/python docs/site/build.py

# Both commit their results: a site is built without Node and without a browser.
pictures: $(VENV)/dev.stamp ui
	$(BIN)/python docs/site/pictures.py

screenshots: $(VENV)/dev.stamp $(VENV)/chromium.stamp ui
	POINTSMAN_PICTURES=docs $(BIN)/python -m pytest tests/web/test_by_drawing.py tests/web/test_screenshots.py -q -n 0

types: $(VENV)/dev.stamp ui
	$(BIN)/python -m tests.web.types

bench: $(VENV)/dev.stamp
	$(BIN)/python -m bench $(ARGS)

bench-peers: $(VENV)/dev.stamp
	$(BIN)/python -m bench.comparison --install $(ARGS)

bench-growth: $(VENV)/dev.stamp
	$(BIN)/python -m bench.growth $(ARGS)

bench-instructions: $(VENV)/dev.stamp
	$(BIN)/python -m bench.instructions $(ARGS)

bench-scale: $(VENV)/dev.stamp $(VENV)/temporal.stamp $(VENV)/restate.stamp
	$(BIN)/python -m bench.scale $(ARGS)

bench-check: $(VENV)/dev.stamp
	$(BIN)/python -m bench.checking $(ARGS)

reliability: $(VENV)/dev.stamp
	$(BIN)/python -m tests.reliability --tier pr --write $(ARGS)

fuzz: $(VENV)/dev.stamp
	$(BIN)/python -m tests.server.fuzzing $(ARGS)

soak: $(VENV)/dev.stamp
	$(BIN)/python -m tests.reliability --for $(TIME) --write $(ARGS)

requirements: $(VENV)/dev.stamp
	$(BIN)/python -m tests.house.requirements_table

# The runtime is held to the versions the tests ran with.
lock: $(VENV)/dev.stamp
	$(LOCK) --extra dev --output-file requirements/dev.lock $(ARGS)
	$(LOCK) --extra all --constraint requirements/dev.lock --output-file requirements/runtime.lock $(ARGS)
	$(LOCK) --extra all --extra restate --extra temporal --constraint requirements/dev.lock \
		--output-file requirements/cluster.lock $(ARGS)
	$(LOCK) --constraint requirements/dev.lock --output-file requirements/core.lock $(ARGS)
	$(LOCK) --extra docs --constraint requirements/dev.lock --output-file requirements/docs.lock $(ARGS)
	echo uv | $(COMPILE) - --constraint requirements/dev.lock --output-file requirements/installer.lock $(ARGS)
	$(COMPILE) tests/interop/requirements.in --constraint requirements/dev.lock \
		--output-file tests/interop/requirements.lock $(ARGS)

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/pip.stamp:
	@test -n "$(PYTHON)" || { echo "Pointsman needs Python 3.11 or newer; found: $$(python3 --version 2>&1)." \
		"Install one, or say where it is: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "This Python has no venv module." \
		"On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "Setting up $(VENV) with $$($(PYTHON) --version) (once)"; $(PYTHON) -m venv $(VENV); }
	@touch $@

$(VENV)/uv.stamp: requirements/installer.lock $(VENV)/pip.stamp
	@$(PIP) install --quiet --require-hashes -r $<
	@touch $@

$(VENV)/postgresql.stamp: tests/install-postgresql $(VENV)/pip.stamp
	@tests/install-postgresql
	@touch $@

$(VENV)/bubblewrap.stamp: tests/install-bubblewrap $(VENV)/pip.stamp
	@tests/install-bubblewrap
	@touch $@

$(VENV)/chromium.stamp: tests/install-chromium $(VENV)/pip.stamp
	@tests/install-chromium
	@touch $@

$(VENV)/nginx.stamp: tests/install-nginx $(VENV)/pip.stamp
	@tests/install-nginx
	@touch $@

$(VENV)/llama.stamp: tests/install-llama $(VENV)/pip.stamp
	@tests/install-llama
	@touch $@

# Other libraries for the tests of tests/interop, with the versions of shared packages that dev.lock has.
$(VENV)/interop.stamp: tests/interop/requirements.lock $(VENV)/dev.stamp
	@$(call install,--require-hashes -r $<)
	@touch $@

$(VENV)/temporal.stamp: tests/install-temporal $(VENV)/pip.stamp
	@tests/install-temporal
	@touch $@

$(VENV)/restate.stamp: tests/install-restate $(VENV)/pip.stamp
	@tests/install-restate
	@touch $@

$(VENV)/runtime.stamp: requirements/runtime.lock pyproject.toml $(VENV)/uv.stamp
	@$(call install,--require-hashes -r $<)
	@$(call install,--no-deps --no-build-isolation --editable .)
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock pyproject.toml $(VENV)/uv.stamp
	@$(call install,--require-hashes -r $<)
	@$(call install,--no-deps --no-build-isolation --editable .)
	@touch $@
