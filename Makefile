# Everything is set up on the way, and only what changed is done again. Nothing outside of this
# folder is touched, except the caches of pip and npm and, when
# programs are missing and apt can be used, Debian's packages of those. tools/make has the rules.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
.SUFFIXES:
# Tests start Python hundreds of times: it need not compile the modules each time.
unexport PYTHONDONTWRITEBYTECODE

PAGE ?= demo
SECONDS ?= 60
MINUTES ?= 10
NAME ?=
WHAT ?=

help: ## this list
demo: ## NumPy -> JS -> GPU -> NumPy in headless Chromium (PAGE=name: another page of the site)
serve: ## the site on http://localhost:8000 (PORT=8001: there; OUTSIDE=1: %pip install may ask PyPI)
docs: ## the documentation: build/site/docs
lite: ## a JupyterLite site with notebooks: build/lite/site
test: ## the tests that fail first: native, in Node, in Pyodide
test-all: ## every suite (hours)
suite: ## one suite, NAME=firefox; without a name, their table
quick: ## the tests of the folders that changed since main
fuzz: ## fuzzers and models, SECONDS=60 SEED=n
mutants: ## changes one place of FILE=path at a time and runs its tests, WHAT=py|js|c (TESTS=folders, COUNT=n)
bench: ## build/bench.json and bench.md, beside today's ways (WHAT=desktop|lite|widget, or the rows of one path)
native: ## the extension for this machine's CPython, installed into build/venv
wheel: ## dist/*.whl for Pyodide
package: ## dist/*.tgz for npm
check: ## format, lint, types, imports, locks, sizes
generate: ## dtypes, devices, options, messages and shaders that several languages have
fix: ## formats and repairs what tools can repair
locks: ## tools/requirements/*.txt from *.in, with the hashes of all files
tables: ## tables of what suites found, WHAT=interop|arrays|onnxruntime|foreign
release: ## dist/release: all files of a release (WHAT=check TAG=v1.2.3: made twice and installed; WHAT=site)
clean: ## removes everything that was built

.PHONY: $(shell sed -nE 's/^([a-z-]+): \#\# .*/\1/p' Makefile)
include $(patsubst %,tools/make/%.mk,names setup build suites tend)

help:
	@sed -nE 's/^([a-z-]+): ## /\1\t/p' Makefile | expand -t 10
