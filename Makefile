# The one task list: `make help` shows it. Everything is set up on the way, and only
# what changed is done again. Nothing outside this folder is touched, except the download
# cache (${XDG_CACHE_HOME:-~/.cache}/dlpack-web) and, when emcc or chromium is missing
# and apt can be used, Debian's packages of those.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
.SUFFIXES:

PAGE ?= demo
TOOLCHAIN := wasm/toolchain
PYTHON_BIN := build/venv/bin
NODE_BIN := node_modules/.bin
# Files whose presence says that a step is done.
VENV := build/venv/.done
NPM := node_modules/.done
NUMPY := build/numpy/.done
NATIVE := py/dlpack_web/_core.abi3.so
ASAN := build/asan/dlpack_web/_core.abi3.so
BRIDGE := py/dlpack_web/_bridge.js
WHEEL := dist/wheel.json
JS := js/dist/index.js

C_FILES := $(wildcard wasm/*.c wasm/*.h)
PY_FILES := $(filter-out $(NATIVE) $(BRIDGE),$(wildcard py/dlpack_web/*.*))
TS_FILES := $(shell find js/src -name '*.ts' 2>/dev/null)

.PHONY: help demo test serve bench check fix wheel package native asan clean
.PHONY: site chromium

help: ## this list
	@grep -hE '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

demo: site chromium ## NumPy -> JS view -> GPUBuffer -> WGSL -> NumPy in Chromium (PAGE=name: another page)
	@$(PYTHON_BIN)/python web/demo.py --page $(PAGE)

serve: site ## the site on http://localhost:8000
	@$(PYTHON_BIN)/python web/serve.py --port 8000

bench: site chromium ## measurements: build/bench.json, build/bench.md and plots
	@$(PYTHON_BIN)/python tests/bench/bench.py

native: $(NATIVE) ## the extension for this machine's CPython, installed into build/venv

asan: $(ASAN) ## the same under AddressSanitizer and UndefinedBehaviorSanitizer

wheel: $(WHEEL) ## dist/*.whl for Pyodide

clean: ## remove everything that was built; downloads stay in the cache
	rm -rf build dist js/dist node_modules py/*.egg-info $(NATIVE) $(BRIDGE)

# --- set-up ---------------------------------------------------------------------------

$(VENV): requirements-dev.txt $(TOOLCHAIN)/find_python.sh
	@python=$$($(TOOLCHAIN)/find_python.sh)
	echo "[setup] Python tools into build/venv, with $$python (half a minute)"
	rm -rf build/venv && mkdir -p build
	"$$python" -m venv build/venv
	$(PYTHON_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --requirement requirements-dev.txt >build/venv.log 2>&1 || { tail build/venv.log; exit 1; }
	touch $@

$(NPM): package.json package-lock.json
	@echo "[setup] npm packages into node_modules"
	npm ci --no-audit --no-fund --loglevel=error
	touch $@

build/xbuildenv/.done: $(VENV) $(NPM) $(TOOLCHAIN)/make_xbuildenv.py
	@echo "[setup] cross-build environment for Pyodide"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/make_xbuildenv.py node_modules/pyodide build/xbuildenv
	touch $@

# --- builds ---------------------------------------------------------------------------

# Warnings are errors here, not in pyproject.toml: a user's newer compiler may have more.
$(NATIVE): $(C_FILES) pyproject.toml $(VENV)
	@echo "[build] native extension"
	CFLAGS=-Werror $(PYTHON_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable . >build/native.log 2>&1 \
	  || { cat build/native.log; exit 1; }
	touch $@

$(WHEEL): $(C_FILES) $(PY_FILES) $(BRIDGE) pyproject.toml $(wildcard README.md LICENSE) \
  build/xbuildenv/.done $(TOOLCHAIN)/build_wheel.sh
	@$(TOOLCHAIN)/build_wheel.sh build/venv build/xbuildenv dist

$(BRIDGE): $(TS_FILES) $(NPM)
	@if [ -e js/src/python.ts ]; then $(NODE_BIN)/esbuild js/src/python.ts --bundle --minify \
	  --format=iife --global-name=__dlpackWeb --target=es2022 --log-level=warning \
	  --outfile=$@; else echo '"use strict";' >$@; fi
