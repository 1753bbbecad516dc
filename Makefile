# The one task list: each goal with what it does, as `make help` shows it; tools/make has how.
# Everything is set up on the way, and only what changed is done again. Nothing outside this
# folder is touched, except the download cache (${XDG_CACHE_HOME:-~/.cache}/dlpack-web) and, when
# emcc or chromium is missing and apt can be used, Debian's packages of those.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.ONESHELL:
.SUFFIXES:

PAGE ?= demo
SECONDS ?= 60
MINUTES ?= 10
ROOM ?=
# The tag of a release, such as v1.2.3: then CHANGELOG.md must have its date, too.
TAG ?=

# Use
help: ## Use: this list
demo: ## Use: NumPy -> JS -> GPU -> NumPy in headless Chromium (PAGE=name: another page)
serve: ## Use: the site on http://localhost:8000 (PORT=8001: there; OUTSIDE=1: %pip install may ask PyPI)
lite: ## Use: a JupyterLite site with notebooks: build/lite/site
docs: ## Use: the documentation: build/site/docs (offline; `make serve` shows it)

# Test
quick: ## Test: the tests of the rooms that changed since main, in a minute (ROOM=webgpu: one by name)
test: ## Test: the tests, but for pages, adapters, sanitizers, notebooks and other browsers
test-all: ## Test: all tests: bundlers, notebooks, other browsers, Deno and Node, too
test-native: ## Test: the C core and Python in this CPython, and the build's scripts
test-asan: ## Test: the same under sanitizers
test-leaks: ## Test: the same under valgrind (half an hour)
fuzz: ## Test: tries to break it (SECONDS=n SEED=n): fuzzers, models, out of memory
fuzz-js: ## Test: the same for JavaScript and WebGPU: calls that fail, a model, cycles
mutants: ## Test: changes lines and checks that tests notice: build/mutants.md (PART=c KNOWN=1 SEED=n COUNT=n CHANGED=commit WORKERS=n QUICK=1)
test-js: ## Test: TypeScript, and WebGPU on Dawn, in Node
test-package: ## Test: the npm package, from its tarball
test-bundlers: ## Test: Vite, webpack, Rollup, Parcel, Next.js, Deno, Bun
test-browser: ## Test: the README's snippets, files, content security policies, in Chromium
test-in-pyodide: ## Test: the native tests and WebGPU in Pyodide, in Chromium
test-in-older-pyodide: ## Test: the same in Pyodide 0.29
test-pages: ## Test: the site's pages but for the landing page, in Chromium
test-adapters: ## Test: the adapters and other libraries, in Chromium
test-pyodides: ## Test: imports, exchange, waiting, interrupts in other versions of Pyodide
test-onnxruntime: ## Test: programs for onnxruntime and ONNX's own tests, natively and in Chromium
soak: ## Test: the landing page for MINUTES=10: its memory has to stay flat
test-live: ## Test: the landing page, in Chromium
test-firefox: ## Test: all of tests/browser and more, in Firefox
test-deno: ## Test: test-js and GPU cases in Deno
test-node-gpu: ## Test: the same in Node with Dawn, GPU cases in Bun
test-gpu-kit: ## Test: the kit, on software GPUs
test-webkit: ## Test: CPU tensors in WebKitGTK
test-desktop: ## Test: dlw.webgpu in CPython, over wgpu-py
test-dawn: ## Test: the same over wgpudawn
test-docs: ## Test: every block of the documentation, its links, names, search
test-lite: ## Test: notebooks, PyScript, libraries that take arrays, in Chromium
test-widget: ## Test: the widget that lends a page's GPU to a kernel, in JupyterLab, Notebook and marimo; JupyterLite; a WebSocket; in Chromium
interop: ## Test: NumPy, PyTorch, JAX, ... and their table
interop-light: ## Test: the same without PyTorch and TensorFlow
interop-numpy: ## Test: NumPy 1.26 and 2.0

# Measure
bench: ## Measure: measurements: build/bench.json, build/bench.md and plots
bench-quick: ## Measure: the same, to see whether it runs
gpu-kit: ## Measure: what tests and measures on a machine with a GPU and nothing else: build/dlpack-web-gpu-kit.tar.xz
bench-desktop: ## Measure: dlw.webgpu against wgpu-py by hand
bench-lite: ## Measure: time to the first results of a cell and of the GPU, in the notebook page and in JupyterLite
bench-widget: ## Measure: arrays from a JupyterLab kernel to the GPU of its page and back, beside bare messages

# Build
wheel: ## Build: dist/*.whl for Pyodide
package: ## Build: dist/*.tgz for npm
native: ## Build: the extension for this machine's CPython, installed into build/venv
asan: ## Build: the same under AddressSanitizer and UndefinedBehaviorSanitizer
clean: ## Build: remove everything that was built; downloads stay in the cache

# Tend
check: ## Tend: format, lint, types, imports, locks, English, sizes
fix: ## Tend: format and repair what tools can repair
where-it-runs: ## Tend: the table of web/RUNTIMES.md, of what the suites found
onnx-table: ## Tend: tests/interop/ONNX.md, of the node tests of ONNX, natively and in a page (6 minutes)
array-tables: ## Tend: the tables of web/docs/reference/arrays.md: Tensor beside ndarray and the array API
locks: ## Tend: generates tools/requirements/*.txt from tools/requirements/*.in, with the hashes of all files
foreign-arrays: ## Tend: tests/foreign/ARRAYS.md: programs of array libraries with Tensors (4 minutes)
onnxruntime-names: ## Tend: web/docs/reference/onnxruntime.md: what each name of onnxruntime is in a page
foreign-results: ## Tend: tests/foreign/RESULTS.md: how other projects' programs run in a page

# Release
release: ## Release: dist/release: all files of a release, an SBOM and their sums
release-check: ## Release: a release can be made by anyone, and installed (TAG=v1.2.3)
recorded-clip: ## Release: web/pages/live/recorded.webp, which the landing page shows without WebGPU
recorded-notebook: ## Release: web/docs/_static/cloud-kernel.webp, the tutorial's notebook in JupyterLab
social-preview: ## Release: build/social-preview.png, which links to the project show
pack-docs: ## Release: build/docs-archives: the documentation of this version as a file
publish-site: ## Release: build/pages: the site, and all versions in build/docs-archives
released: ## Release: documentation and examples name the registries, not a clone (VERSION=1.2.3)
address: ## Release: sets the address of the project: ADDRESS=https://…

.PHONY: $(shell sed -nE 's/^([a-z-]+): .. [A-Z].*/\1/p' Makefile)
include $(patsubst %,tools/make/%.mk,names setup build test browsers measure tend release)

help:
	@for group in Use Test Measure Build Tend Release; do
	  echo "$$group"
	  sed -nE "s/^([a-z-]+):.*## $$group: /  \\1\t/p" Makefile | expand -t 18
	done
