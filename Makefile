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
SECONDS ?= 60
MINUTES ?= 10
ROOM ?=
TOOLCHAIN := wasm/toolchain
PYTHON_BIN := build/venv/bin
NODE_BIN := node_modules/.bin
# Runs a suite, and prints its time and its peak of memory.
SUITE = $(PYTHON_BIN)/python $(TOOLCHAIN)/measure.py $@
MAKE_VENV := $(addprefix $(TOOLCHAIN)/,make_venv.sh find_python.sh)
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
# Files whose presence says that a step is done.
VENV := build/venv/.done
NPM := node_modules/.done
PYODIDES := pyodide pyodide-0.29
NUMPY := build/numpy/.done
OLD_NUMPYS := 1.26 2.0
NATIVE := py/dlpack_web/_core.abi3.so
ASAN := build/asan/dlpack_web/_core.abi3.so
FAULTS := build/faults/dlpack_web/_core.abi3.so
FUZZ := build/fuzz
# Where the compiler makes 32-bit code that this machine runs.
FUZZERS := $(FUZZ)/core64 $(if $(filter x86_64,$(shell uname -m)),$(FUZZ)/core32)
BRIDGE := py/dlpack_web/_bridge.js
WHEEL := dist/wheel.json
LIBRARIES := build/libraries/.done
PATCHED := build/patched/.done
RUNTIMES := build/runtimes/.done
DAWN := build/dawn/.done
KIT := build/dlpack-web-gpu-kit.tar.xz
MODEL := build/model/.done
MEASUREMENTS := build/measurements/.done
PYPI_WHEELS := build/wheels/.done
MODELS := build/models/.done
NODES := build/nodes/index.json
OLDER := build/older/.done
MORE_PYODIDES := build/pyodides/.done
LITE := build/lite/.done
MUTANTS := build/mutants/venv/.done
ARRAYS := build/arrays/.done
DOCS := build/docs/venv/.done build/docs/typedoc/.done
EXAMPLE := build/example/example.wasm
# What single pages need besides the site.
NEEDS_chain := $(LIBRARIES) $(MODEL)
NEEDS_arrow := $(LIBRARIES) $(MEASUREMENTS)
NEEDS_live := $(LIBRARIES) $(MODEL)
NEEDS_onnxruntime := $(LIBRARIES) $(MODEL)
NEEDS_lite := $(LITE)
NEEDS_notebook := $(LITE)
NEEDS_pyscript.eval := $(LITE)
NEEDS_pyscript_worker.eval := $(LITE)
# What the notebooks of JupyterLite import, of Pyodide's own packages.
LITE_PACKAGES := numpy matplotlib pillow kiwisolver contourpy fonttools cycler pyparsing \
  python-dateutil pytz six packaging micropip
# The libraries that test-lite calls with Tensors, beside those of $(PYPI_WHEELS); NumPy is in the site.
ARRAY_PACKAGES := $(filter-out numpy micropip,$(LITE_PACKAGES)) pandas scipy scikit-learn joblib \
  threadpoolctl
JS := js/dist/index.js

C_FILES := $(wildcard wasm/*.c wasm/*.h)
EXAMPLE_FILES := $(wildcard wasm/example/*.c wasm/example/*.h)
FUZZ_FILES := $(wildcard tests/fuzz/core/*.c tests/fuzz/core/*.h)
C_TESTS := $(wildcard tests/native/*.c tests/fuzz/*.c wasm/toolchain/windows/*.h) $(FUZZ_FILES) $(EXAMPLE_FILES)
PY_FILES := $(filter-out $(NATIVE) $(BRIDGE),$(wildcard py/dlpack_web/*.*))
TS_FILES := $(shell find js/src -name '*.ts' 2>/dev/null)
JS_TESTS = $(shell find tests/js -name '*.test.mjs')

.PHONY: help quick demo test serve lite bench check fix locks wheel package native asan clean
.PHONY: address pack-docs publish-site social-preview release release-check where-it-runs
.PHONY: docs test-docs onnx-table onnxruntime-names foreign-results array-tables foreign-arrays test-onnxruntime
.PHONY: interop interop-light interop-numpy bench-quick bench-lite bench-desktop
.PHONY: test-native test-asan test-leaks test-js test-package test-browser test-in-pyodide test-lite
# What goes into the kit, beside what is built.
KIT_FILES = $(shell find tests -name '*.mjs' -o -name '*.py' -o -name '*.json') \
  tests/kit/run.sh tests/kit/README.txt js/EXCHANGE.md web/counters.mjs
.PHONY: soak test-all test-in-older-pyodide test-pages test-adapters test-bundlers test-desktop test-dawn test-pyodides test-live test-firefox test-webkit test-deno test-node-gpu
.PHONY: gpu-kit test-gpu-kit fuzz fuzz-js mutants
.PHONY: check-c check-python check-js check-imports check-locks check-english check-sizes js site chromium

help: ## Use: this list
	@for group in Use Test Measure Build Tend Release; do
	  echo "$$group"
	  sed -nE "s/^([a-z-]+):.*## $$group: /  \\1\t/p" Makefile | expand -t 18
	done

demo: $(NEEDS_$(PAGE)) site chromium ## Use: NumPy -> JS -> GPU -> NumPy in headless Chromium (PAGE=name: another page)
	@$(PYTHON_BIN)/python web/demo.py --page $(PAGE)

quick: $(VENV) ## Test: the tests of the rooms that changed since main, in a minute (ROOM=webgpu: one by name)
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/quick.py $(ROOM)

# Two at a time, the longest first. What they need comes before (READY), or make would start
# those first that wait for nothing.
test: ## Test: the tests, but for pages, adapters, sanitizers, notebooks and other browsers
	@$(TOOLCHAIN)/need.sh cc npm emcc chromium
	$(MAKE) --no-print-directory -j2 $(NATIVE) $(NEEDS_chain) $(NEEDS_arrow) $(LIBRARIES) \
	  $(PYPI_WHEELS) $(PATCHED) $(EXAMPLE) $(DAWN) package site
	$(MAKE) --no-print-directory -j2 --output-sync=target READY=1 \
	  test-in-pyodide test-browser test-package test-js test-native

test-all: export WHOLE := 1
test-all: test test-asan test-desktop test-dawn test-pyodides test-live test-onnxruntime test-docs test-bundlers test-lite test-firefox test-webkit test-deno test-node-gpu test-gpu-kit ## Test: all tests: bundlers, notebooks, other browsers, Deno and Node, too

serve: $(LITE) $(NEEDS_arrow) docs ## Use: the site on http://localhost:8000 (OUTSIDE=1: %pip install may ask PyPI)
	@$(PYTHON_BIN)/python web/serve.py --port 8000 $(if $(OUTSIDE),--outside)

lite: $(LITE) ## Use: a JupyterLite site with notebooks: build/lite/site

docs: $(DOCS) $(NATIVE) site ## Use: the documentation: build/site/docs (offline; `make serve` shows it)
	@build/docs/venv/bin/python web/docs/_tools/build.py

bench: $(NATIVE) $(LIBRARIES) site chromium ## Measure: measurements: build/bench.json, build/bench.md and plots
	@$(PYTHON_BIN)/python tests/bench/bench.py

bench-quick: $(NATIVE) $(LIBRARIES) site chromium ## Measure: the same, to see whether it runs
	@echo "[test] tests/bench --quick (figures that mean nothing)"
	$(PYTHON_BIN)/python tests/bench/bench.py --quick >/dev/null

interop: build/interop/.torch build/interop/.tensorflow interop-light ## Test: NumPy, PyTorch, JAX, ... and their table

check: check-c check-python check-js check-imports check-locks check-english check-sizes ## Tend: format, lint, types, imports, locks, English, sizes

fix: $(VENV) $(NPM) ## Tend: format and repair what tools can repair
	$(PYTHON_BIN)/clang-format -i $(C_FILES) $(C_TESTS)
	$(PYTHON_BIN)/ruff check --fix
	$(PYTHON_BIN)/ruff format
	$(NODE_BIN)/biome check --write

where-it-runs: $(VENV) ## Tend: the table of web/RUNTIMES.md, of what the suites found
	$(PYTHON_BIN)/python web/where_it_runs.py

wheel: $(WHEEL) ## Build: dist/*.whl for Pyodide

package: $(JS) $(WHEEL) ## Build: dist/*.tgz for npm
	npm pack --silent --pack-destination dist

# The tag of a release, such as v1.2.3: then CHANGELOG.md must have its date, too.
TAG ?=
release: package $(VENV) build/windows/.done ## Release: dist/release: all files of a release, an SBOM and their sums
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/release.py build dist/release

# A clone gives the same bytes, and what was made installs where nothing else is.
release-check: release ## Release: a release can be made by anyone, and installed (TAG=v1.2.3)
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/release.py versions --tag=$(TAG)
	rm -rf build/release
	git clone --quiet . build/release
	$(MAKE) --no-print-directory -C build/release release
	$(PYTHON_BIN)/python $(TOOLCHAIN)/release.py compare dist/release build/release/dist/release
	$(PYTHON_BIN)/python $(TOOLCHAIN)/release.py install dist/release
	rm -rf build/release

social-preview: $(VENV) chromium ## Release: build/social-preview.png, which links to the project show
	@$(PYTHON_BIN)/python web/social_preview.py build/social-preview.png

pack-docs: docs ## Release: build/docs-archives: the documentation of this version as a file
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/publish_site.py pack build/site build/docs-archives

publish-site: pack-docs $(LITE) $(LIBRARIES) $(MODEL) $(NEEDS_arrow) ## Release: build/pages: the site, and all versions in build/docs-archives
	@rm -rf build/pages
	$(PYTHON_BIN)/python $(TOOLCHAIN)/publish_site.py lay-out build/site build/docs-archives build/pages

address: $(VENV) ## Release: says where the project is at home: ADDRESS=https://…
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/release.py address "$(ADDRESS)"

native: $(NATIVE) ## Build: the extension for this machine's CPython, installed into build/venv

asan: $(ASAN) ## Build: the same under AddressSanitizer and UndefinedBehaviorSanitizer

# The tests that onnx itself has, of single operators: minutes, so the suites run a sample of them.
onnx-table: $(NODES) $(LIBRARIES) site chromium ## Tend: tests/interop/ONNX.md, of the node tests of ONNX, natively and in a page (6 minutes)
	@$(PYTHON_BIN)/python tests/models/node_table.py

array-tables: $(NATIVE) ## Tend: the tables of web/docs/reference/arrays.md: Tensor beside ndarray and the array API
	@$(PYTHON_BIN)/python tests/native/attributes.py

# Those that the others follow (-c) come first. Old NumPys have no versions for all Pythons.
locks: build/locks/.done ## Tend: requirements/*.txt anew from requirements/*.in, with the hashes of all files
	@for name in locks dev docs interop tensorflow model lite desktop mutants pyodide windows $(OLD_NUMPYS:%=numpy-%); do
	  echo "[locks] requirements/$$name.txt"
	  case $$name in
	  numpy-*) all= ;;
	  mutants | pyodide) all="--universal --no-deps" ;; # the rest is not needed, or comes with Pyodide
	  *) all=--universal ;;
	  esac
	  build/locks/bin/uv pip compile --quiet --no-config $$all --python-version 3.12 \
	    --generate-hashes --only-binary :all: --emit-build-options \
	    --custom-compile-command "make locks" \
	    requirements/$$name.in --output-file requirements/$$name.txt
	done

foreign-arrays: export PROGRAMS := write
foreign-arrays: build/interop/.done build/desktop/.done $(ARRAYS) $(PYPI_WHEELS) $(NATIVE) site chromium ## Tend: tests/foreign/ARRAYS.md: programs of array libraries with Tensors (4 minutes)
	@rm -f tests/foreign/arrays/outcomes.json
	PYTHONPATH=py build/interop/bin/python -m pytest -q tests/interop/test_programs.py
	PYTHONPATH=py build/desktop/bin/python -m pytest -q tests/desktop/test_array_programs.py
	$(PYTHON_BIN)/python -m pytest -q tests/browser/test_array_libraries.py -k program

clean: ## Build: remove everything that was built; downloads stay in the cache
	rm -rf build dist js/dist node_modules py/*.egg-info $(NATIVE) $(BRIDGE)

# --- parts of `make test` -------------------------------------------------------------

test-native: $(if $(READY),,$(NATIVE)) ## Test: the C core and Python in this CPython, and the build's scripts
	@$(TOOLCHAIN)/need.sh emcc
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/native tests/toolchain

# Leaks are not looked for: CPython itself keeps memory until its end. The tests count
# live tensors and references instead, and test-leaks looks. Memory does not stay flat
# here, where freed blocks are kept. --capture=sys lets the sanitizers' reports through.
test-asan: $(if $(READY),,$(ASAN) $(NATIVE)) ## Test: the same under sanitizers
	@echo "[test] tests/native under ASan and UBSan"
	export PYTHONPATH=build/asan PYTHONMALLOC=malloc
	export ASAN_OPTIONS=detect_leaks=0:$${ASAN_OPTIONS:-}
	export LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"
	$(PYTHON_BIN)/python -c 'import dlpack_web._core as c; assert "/asan/" in c.__file__'
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/native -p no:cacheprovider --capture=sys \
	  -k "not million"

# Every test but those of sheer numbers under valgrind. Memory errors anywhere fail; of
# leaks, those that have our extension in their stack: CPython and others keep memory till
# the end. What tests start (compilers, other Pythons) is not watched.
test-leaks: $(NATIVE) ## Test: the same under valgrind (half an hour)
	@$(TOOLCHAIN)/need.sh valgrind
	echo "[test] tests/native under valgrind (log: build/valgrind.log)"
	PYTHONMALLOC=malloc valgrind --log-file=build/valgrind.log --num-callers=40 \
	  --fullpath-after= --suppressions=tests/native/valgrind.supp --leak-check=full \
	  --show-leak-kinds=definite $(PYTHON_BIN)/python -m pytest tests/native \
	  -p no:cacheprovider -k "not million"
	ours='/_core\.abi3\.so|wasm\/[a-z]+\.c:/' error='/ at 0x/ && !/definitely lost/'
	sed -E 's/^==[0-9]+== ?//' build/valgrind.log | awk -v RS= \
	  "$$ours || $$error { print \$$0 \"\\n\"; bad = 1 } END { exit bad }"

fuzz: $(FUZZERS) $(FUZZ)/hostile.so $(ASAN) $(FAULTS) ## Test: tries to break it (SECONDS=n SEED=n): fuzzers, models, no memory
	@$(SUITE) $(PYTHON_BIN)/python tests/fuzz/run.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

fuzz-js: site chromium ## Test: the same for JavaScript and WebGPU: calls that fail, a model, cycles
	@$(SUITE) $(PYTHON_BIN)/python tests/fuzz/js/run.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# It may be ended at any time, and goes on where it was.
mutants: $(NATIVE) $(MUTANTS) ## Test: changes lines, and looks whether tests notice: build/mutants.md (PART=c KNOWN=1 SEED=n COUNT=n CHANGED=commit WORKERS=n)
	@$(PYTHON_BIN)/python tests/mutants/run.py $(addprefix --part=,$(PART)) $(if $(KNOWN),--known) \
	  $(addprefix --seed=,$(SEED)) $(addprefix --count=,$(COUNT)) $(addprefix --workers=,$(WORKERS)) \
	  $(addprefix --changed=,$(CHANGED)) $(addprefix --budget=,$(BUDGET))

# Without a driver for Vulkan the cases for the GPU are skipped.
test-js: $(if $(READY),,$(LIBRARIES) $(EXAMPLE) $(DAWN) site) ## Test: TypeScript, and WebGPU on Dawn, in Node
	@$(TOOLCHAIN)/need.sh libvulkan swiftshader && export WEBGPU=required || echo "[skip] GPU cases in Node"
	$(SUITE) node --test $(JS_TESTS)

test-package: $(if $(READY),,$(LIBRARIES) package site chromium) ## Test: the npm package, from its tarball
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package

test-bundlers: package site chromium ## Test: Vite, webpack, Rollup, Parcel, Next.js, Deno, Bun
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package/bundlers.py tests/package/nextjs.py \
	  tests/package/runtimes.py

# Four suites of tests/browser. In test-all test-browser runs all of it: one run counts the cases.
IN_PYODIDE := $(addprefix tests/browser/test_,in_pyodide.py webgpu.py)
PAGES := $(addprefix tests/browser/test_,pages.py renderers.py)
ADAPTERS := tests/browser/test_adapters.py
IN_CHROMIUM := $(if $(READY),,$(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(EXAMPLE) $(PATCHED) site chromium)

test-browser: $(IN_CHROMIUM) ## Test: the README's snippets, files, content security policies, in Chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser $(addprefix --ignore tests/browser/test_,\
	  live.py onnxruntime.py foreign_onnxruntime.py array_libraries.py pyodides.py) \
	  $(if $(WHOLE),,$(patsubst %,--ignore %,$(IN_PYODIDE) $(PAGES) $(ADAPTERS)))

test-in-pyodide: $(IN_CHROMIUM) ## Test: the native tests and WebGPU in Pyodide, in Chromium
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k "not pyodide-0.29")

test-in-older-pyodide: $(IN_CHROMIUM) ## Test: the same in Pyodide 0.29
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(IN_PYODIDE) -k pyodide-0.29)

test-pages: $(IN_CHROMIUM) ## Test: the site's pages but for the landing page, in Chromium
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(PAGES))

test-adapters: $(IN_CHROMIUM) ## Test: the adapters and other libraries, in Chromium
	$(if $(WHOLE),,$(SUITE) $(PYTHON_BIN)/python -m pytest $(ADAPTERS))

# What we use of Pyodide's inside, in the versions that hosts bring (minutes).
test-pyodides: $(MORE_PYODIDES) site chromium ## Test: imports, exchange, waiting, interrupts in other versions of Pyodide
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_pyodides.py

onnxruntime-names: $(MODELS) $(LIBRARIES) site chromium ## Tend: web/docs/reference/onnxruntime.md: what each name of onnxruntime is in a page
	NAMES=write $(PYTHON_BIN)/python -m pytest -q tests/browser/test_onnxruntime.py -k every_name

test-onnxruntime: $(MODELS) $(NODES) $(OLDER) $(LIBRARIES) $(ARRAYS) site chromium ## Test: programs for onnxruntime and ONNX's own tests, natively and in Chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest $(FOREIGN_ORT) tests/browser/test_onnxruntime.py

FOREIGN_ORT := tests/browser/test_foreign_onnxruntime.py

foreign-results: $(MODELS) $(LIBRARIES) $(ARRAYS) site chromium ## Tend: tests/foreign/RESULTS.md: how programs of others do in a page
	FOREIGN=write $(PYTHON_BIN)/python -m pytest -q $(FOREIGN_ORT)

soak: $(NEEDS_live) site chromium ## Test: the landing page for MINUTES=10: its memory has to stay flat
	@$(PYTHON_BIN)/python tests/browser/soak.py --minutes $(MINUTES)

test-live: $(NEEDS_live) site chromium ## Test: the landing page, in Chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_live.py

# No comment behind that: make would take the blank before it for a part of the name.
test-firefox: export BROWSER := firefox
test-firefox: $(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(EXAMPLE) $(PATCHED) $(LITE) package site ## Test: all of tests/browser and more, in Firefox
	@$(TOOLCHAIN)/need.sh firefox-esr chromium # of which the software GPU is
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser --ignore tests/browser/test_onnxruntime.py \
	  --ignore $(FOREIGN_ORT) --ignore tests/browser/test_array_libraries.py --ignore tests/browser/test_pyodides.py
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package/test_pages.py
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite -k "tour or interrupted"

# Deno's WebGPU is wgpu-core: a second implementation.
test-deno: $(LIBRARIES) $(RUNTIMES) $(DAWN) site ## Test: test-js and GPU cases in Deno
	@$(TOOLCHAIN)/need.sh libvulkan swiftshader lavapipe
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/runtimes -k "deno or missing or refused"

test-node-gpu: $(LIBRARIES) $(RUNTIMES) $(DAWN) site ## Test: the same in Node with Dawn, GPU cases in Bun
	@$(TOOLCHAIN)/need.sh libvulkan swiftshader
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/runtimes -k "node or bun or missing or refused"

gpu-kit: $(KIT) ## Measure: what tests and measures on a machine with a GPU and nothing else: build/dlpack-web-gpu-kit.tar.xz

test-gpu-kit: $(KIT) ## Test: the kit, on software GPUs
	@$(TOOLCHAIN)/need.sh swiftshader lavapipe
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/kit

test-webkit: site ## Test: CPU tensors in WebKitGTK
	@$(TOOLCHAIN)/need.sh WebKitWebDriver Xvfb
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/webkit.py

# The driver is software: lavapipe, or the one in VK_DRIVER_FILES (tests/desktop/conftest.py).
test-desktop: build/desktop/.done $(MODEL) $(NATIVE) ## Test: dlw.webgpu in CPython, over wgpu-py
	@$(TOOLCHAIN)/need.sh libvulkan lavapipe
	echo "[test] tests/desktop"
	PYTHONPATH=py $(SUITE) build/desktop/bin/python -m pytest tests/desktop -p no:cacheprovider

test-dawn: export BACKEND := dawn
test-dawn: build/desktop/.done $(MODEL) $(NATIVE) ## Test: the same over wgpudawn
	@$(TOOLCHAIN)/need.sh libvulkan swiftshader
	echo "[test] tests/desktop over Dawn"
	PYTHONPATH=py $(SUITE) build/desktop/bin/python -m pytest tests/desktop -p no:cacheprovider

test-docs: docs build/desktop/.done $(LITE) $(LIBRARIES) chromium ## Test: every block of the documentation, its links, names, search
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/docs

test-lite: $(LITE) $(ARRAYS) $(PYPI_WHEELS) chromium ## Test: notebooks, PyScript, libraries that take arrays, in Chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/lite
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/browser/test_array_libraries.py

bench-desktop: build/desktop/.done $(NATIVE) ## Measure: dlw.webgpu against wgpu-py by hand
	@build/desktop/bin/python tests/desktop/timing.py

bench-lite: $(LITE) chromium ## Measure: time to the first result of the GPU in JupyterLite
	@$(PYTHON_BIN)/python tests/lite/timing.py

# The same without PyTorch and TensorFlow (unless they are installed): a minute less, and
# gigabytes.
interop-light: build/interop/.done $(NATIVE) interop-numpy ## Test: the same without PyTorch and TensorFlow
	@echo "[test] tests/interop"
	table=; if [ -e build/interop/.torch ] && [ -e build/interop/.tensorflow ]; then
	  table="--results=tests/interop/RESULTS.md $$(printf -- '--with-notes=%s ' \
	    build/numpy-*/notes.json)"
	fi
	PYTHONPATH=py $(SUITE) build/interop/bin/python -m pytest tests/interop $$table

# NumPy before 2.1, which speaks DLPack before 1.0; there is none for Python 3.13. It also
# runs the native tests: the package's extra `numpy` allows it. Those of files, where NumPy
# only compares, are for `make interop`.
FEWER = --ignore-glob='tests/native/test_*file*.py' --ignore=tests/native/test_save_paths.py \
  --ignore=tests/native/test_million.py
interop: FEWER =
interop-numpy: $(OLD_NUMPYS:%=build/numpy-%/.done) $(NATIVE) ## Test: NumPy 1.26 and 2.0
	@for numpy in $(OLD_NUMPYS); do
	  venv=build/numpy-$$numpy
	  if [ ! -x $$venv/bin/python ]; then
	    echo "[skip] NumPy $$numpy was not run: it needs Python 3.12, and none was found"
	    continue
	  fi
	  echo "[test] tests/native and tests/interop with NumPy $$numpy"
	  PYTHONPATH=py $(SUITE) $$venv/bin/python -m pytest tests/native -p no:cacheprovider $(FEWER)
	  PYTHONPATH=py $$venv/bin/python -m pytest tests/interop -p no:cacheprovider \
	    -k numpy --notes=$$venv/notes.json
	done

build/numpy-%/.done: requirements/numpy-%.txt $(MAKE_VENV)
	@rm -rf build/numpy-$* && mkdir -p build/numpy-$*
	if $(TOOLCHAIN)/find_python.sh 3.12 >/dev/null 2>&1; then
	  echo "[setup] NumPy $* into build/numpy-$*"
	  $(TOOLCHAIN)/make_venv.sh build/numpy-$* numpy-$* 3.12
	fi
	touch $@

build/interop/.done: requirements/interop.txt $(MAKE_VENV)
	@echo "[setup] frameworks into build/interop"
	$(TOOLCHAIN)/make_venv.sh build/interop interop
	touch $@

build/docs/venv/.done: requirements/docs.txt $(MAKE_VENV)
	@echo "[setup] Sphinx into build/docs"
	$(TOOLCHAIN)/make_venv.sh build/docs/venv docs
	touch $@

# TypeDoc brings the TypeScript that it understands.
build/docs/typedoc/.done: $(addprefix web/docs/_tools/typedoc/package,.json -lock.json)
	@$(TOOLCHAIN)/need.sh npm
	echo "[setup] TypeDoc into build/docs"
	mkdir -p $(@D) && cp $^ $(@D)
	cd $(@D)
	$(NPM_CI)
	touch .done

build/desktop/.done: requirements/desktop.txt $(MAKE_VENV)
	@echo "[setup] wgpu-py into build/desktop"
	$(TOOLCHAIN)/make_venv.sh build/desktop desktop
	touch $@

# The one module that is used needs nothing else.
$(MUTANTS): requirements/mutants.txt $(MAKE_VENV)
	@echo "[setup] universalmutator into build/mutants"
	PIP_NO_DEPS=1 $(TOOLCHAIN)/make_venv.sh build/mutants/venv mutants
	touch $@

build/windows/.done: requirements/windows.txt $(MAKE_VENV)
	@echo "[setup] zig into build/windows"
	$(TOOLCHAIN)/make_venv.sh build/windows windows
	touch $@

build/interop/.torch: build/interop/.done requirements/torch.txt
	@echo "[setup] PyTorch into build/interop"
	build/interop/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement requirements/torch.txt >build/torch.log 2>&1 \
	  || { tail build/torch.log; exit 1; }
	touch $@

build/interop/.tensorflow: build/interop/.done requirements/tensorflow.txt
	@echo "[setup] TensorFlow into build/interop"
	build/interop/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --requirement requirements/tensorflow.txt >build/tensorflow.log 2>&1 \
	  || { tail build/tensorflow.log; exit 1; }
	touch $@

# --- parts of `make check` ------------------------------------------------------------

check-c: $(VENV)
	$(PYTHON_BIN)/clang-format --dry-run -Werror $(C_FILES) $(C_TESTS)

check-python: $(VENV)
	$(PYTHON_BIN)/ruff format --check
	$(PYTHON_BIN)/ruff check
	$(PYTHON_BIN)/mypy

check-js: package
	$(NODE_BIN)/biome check --error-on-warnings
	$(NODE_BIN)/publint --strict
	$(NODE_BIN)/attw --quiet --profile esm-only dist/*.tgz
	node $(TOOLCHAIN)/check_workflows.mjs

check-locks: $(VENV)
	$(PYTHON_BIN)/python $(TOOLCHAIN)/check_locks.py

check-imports: $(VENV)
	$(PYTHON_BIN)/python $(TOOLCHAIN)/check_imports.py

check-english: $(VENV)
	$(PYTHON_BIN)/python $(TOOLCHAIN)/check_english.py

check-sizes: $(WHEEL)
	$(PYTHON_BIN)/python $(TOOLCHAIN)/check_sizes.py

# --- set-up ---------------------------------------------------------------------------

$(VENV): requirements/dev.txt $(MAKE_VENV)
	@echo "[setup] Python tools into build/venv"
	$(TOOLCHAIN)/make_venv.sh build/venv dev
	touch $@

build/locks/.done: requirements/locks.txt $(MAKE_VENV)
	@echo "[setup] uv into build/locks"
	$(TOOLCHAIN)/make_venv.sh build/locks locks
	touch $@

$(NPM): package.json package-lock.json
	@$(TOOLCHAIN)/need.sh npm
	echo "[setup] npm packages into node_modules"
	$(NPM_CI)
	touch $@

build/xbuildenv/.done: $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,make_xbuildenv.py pyodide_files.py)
	@echo "[setup] cross-build environment for Pyodide"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/make_xbuildenv.py node_modules/pyodide build/xbuildenv
	touch $@

$(NUMPY): $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,fetch_packages.py pyodide_files.py)
	@rm -rf build/numpy
	for pyodide in $(PYODIDES); do
	  $(PYTHON_BIN)/python $(TOOLCHAIN)/fetch_packages.py node_modules/$$pyodide build/numpy/$$pyodide
	done
	touch $@

$(PYPI_WHEELS): requirements/pyodide.txt $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,fetch_wheels.py pyodide_files.py)
	@echo "[setup] wheels for Pyodide, from PyPI, into build/wheels"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/fetch_wheels.py node_modules/pyodide build/wheels
	touch $@

# The libraries that tensors are exchanged with, for pages and tests: a file for each.
$(LIBRARIES): $(wildcard web/libraries/*.*) $(NPM)
	@echo "[setup] JavaScript libraries into build/libraries"
	mkdir -p build/libraries && cp web/libraries/*.json web/libraries/*.mjs build/libraries
	cd build/libraries
	$(NPM_CI)
	../../$(NODE_BIN)/esbuild *.mjs --bundle --splitting --format=esm --minify \
	  --target=es2022 --log-level=error --outdir=site --out-extension:.js=.mjs
	ln -sfn ../node_modules/onnxruntime-web/dist site/ort
	ln -sfn ../node_modules/@duckdb/duckdb-wasm/dist site/duckdb
	ln -sfn ../node_modules/@litertjs/core/wasm site/litert
	ln -sfn ../node_modules/@pyscript/core/dist site/pyscript
	ln -sfn ../node_modules/@techstark/opencv-js/dist site/opencv
	ln -sfn ../node_modules/transformers-3/dist site/transformers-3
	ln -sfn ../node_modules/@huggingface/transformers/node_modules/onnxruntime-web/dist \
	  site/transformers-4
	touch .done

# Those that speak the exchange protocol themselves, by our patches: without an adapter.
$(PATCHED): $(LIBRARIES) $(wildcard web/libraries/patches/*.patch) $(TOOLCHAIN)/patch_libraries.py | $(VENV)
	@echo "[setup] patched libraries into build/patched"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/patch_libraries.py
	cd build/patched
	cp ../../web/libraries/{jax,zarrita}.mjs .
	NODE_PATH=../libraries/node_modules ../../$(NODE_BIN)/esbuild jax.mjs zarrita.mjs --bundle \
	  --splitting --format=esm --target=es2022 --log-level=error --outdir=site \
	  --out-extension:.js=.mjs
	ln -sfn ../node_modules/onnxruntime-web/dist/ort.webgpu.mjs site/ort.mjs
	touch .done

# The oldest version of onnxruntime-web that is tested.
$(OLDER): $(addprefix tests/browser/older/package,.json -lock.json)
	@echo "[setup] older libraries into build/older"
	mkdir -p build/older && cp $^ build/older
	cd build/older
	$(NPM_CI)
	touch .done

# With the NumPy wheel of 314.0.4, which has their ABI.
$(MORE_PYODIDES): $(addprefix tests/browser/pyodides/package,.json -lock.json) $(VENV) $(addprefix $(TOOLCHAIN)/,fetch_packages.py pyodide_files.py)
	@$(TOOLCHAIN)/need.sh npm
	echo "[setup] other versions of Pyodide into build/pyodides"
	mkdir -p build/pyodides && cp $(filter %.json,$^) build/pyodides
	(cd build/pyodides && $(NPM_CI))
	for folder in build/pyodides/node_modules/pyodide-*; do
	  $(PYTHON_BIN)/python $(TOOLCHAIN)/fetch_packages.py $$folder build/pyodides/numpy/$${folder##*/}
	done
	touch $@

# Deno, Node, Bun and Dawn, each a package of npm.
$(RUNTIMES): $(addprefix tests/runtimes/package,.json -lock.json)
	@$(TOOLCHAIN)/need.sh npm
	echo "[setup] Deno, Node, Bun and Dawn into build/runtimes"
	mkdir -p build/runtimes && cp $^ build/runtimes
	cd build/runtimes
	$(NPM_CI)
	touch .done

# Without the runtimes, which are optional there and half a gigabyte.
$(DAWN): $(addprefix tests/runtimes/package,.json -lock.json)
	@$(TOOLCHAIN)/need.sh npm
	echo "[setup] Dawn for Node into build/dawn"
	mkdir -p build/dawn && cp $^ build/dawn
	cd build/dawn
	$(NPM_CI) --omit=optional
	touch .done

$(KIT): $(LIBRARIES) $(RUNTIMES) $(JS) $(WHEEL) $(NUMPY) $(KIT_FILES) | site
	@$(TOOLCHAIN)/need.sh libvulkan
	echo "[build] the kit for machines with a GPU (a minute)"
	$(PYTHON_BIN)/python tests/kit/build.py

$(MODEL): requirements/model.txt web/digits.py web/tflite.py $(MAKE_VENV)
	@echo "[setup] scikit-learn, ONNX and onnxruntime into build/model"
	rm -rf build/model
	$(TOOLCHAIN)/make_venv.sh build/model/venv model
	build/model/venv/bin/python web/digits.py build/model/site
	touch $@

# The file of columns that the arrow page reads, written by Apache Arrow for JavaScript.
$(MEASUREMENTS): web/measurements.mjs $(LIBRARIES)
	@echo "[build] measurements, an Arrow file, into build/measurements"
	node web/measurements.mjs build/measurements/site
	touch $@

# What the programs of tests/foreign/onnxruntime run, and the node tests of the package onnx.
$(MODELS): $(addprefix tests/models/,make.py building.py estimators.py programs.py) $(MODEL)
	@build/model/venv/bin/python tests/models/make.py build/models
	touch $@

$(NODES): tests/models/node_files.py $(MODEL)
	@rm -rf build/nodes
	build/model/venv/bin/python tests/models/node_files.py build/nodes

build/lite/venv/.done: requirements/lite.txt $(MAKE_VENV)
	@echo "[setup] JupyterLite into build/lite"
	rm -rf build/lite
	$(TOOLCHAIN)/make_venv.sh build/lite/venv lite
	touch $@

$(LITE): build/lite/venv/.done $(wildcard web/lite/* web/lite/notebooks/*) $(WHEEL) $(NEEDS_chain) | site
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/fetch_packages.py node_modules/pyodide \
	  build/lite/packages $(LITE_PACKAGES)
	build/lite/venv/bin/python web/lite/build.py
	touch $@

$(ARRAYS): $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,fetch_packages.py pyodide_files.py)
	@rm -rf build/arrays
	$(PYTHON_BIN)/python $(TOOLCHAIN)/fetch_packages.py node_modules/pyodide build/arrays $(ARRAY_PACKAGES)
	touch $@

chromium:
	@$(TOOLCHAIN)/need.sh chromium

# --- builds ---------------------------------------------------------------------------

# Warnings are errors here, not in pyproject.toml: a user's newer compiler may have more.
$(NATIVE): $(C_FILES) pyproject.toml $(VENV)
	@$(TOOLCHAIN)/need.sh cc
	echo "[build] native extension"
	CFLAGS=-Werror $(PYTHON_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable . >build/native.log 2>&1 \
	  || { cat build/native.log; exit 1; }
	touch $@

$(ASAN): $(C_FILES) $(PY_FILES) pyproject.toml $(VENV) $(TOOLCHAIN)/build_asan.py
	@echo "[build] native extension with sanitizers"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/build_asan.py build/asan

$(FAULTS): $(C_FILES) $(PY_FILES) pyproject.toml $(VENV) $(TOOLCHAIN)/build_asan.py tests/fuzz/faults.c
	@echo "[build] native extension with sanitizers and memory that runs out"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/build_asan.py build/faults --faults

$(FUZZ)/core%: $(C_FILES) $(FUZZ_FILES) $(TOOLCHAIN)/build_fuzzer.sh
	@$(TOOLCHAIN)/need.sh clang libfuzzer$*
	echo "[build] fuzzer of the C core, $* bits"
	$(TOOLCHAIN)/build_fuzzer.sh $* $@

$(FUZZ)/hostile.so: tests/fuzz/hostile.c $(VENV)
	@mkdir -p $(FUZZ)
	include=$$($(PYTHON_BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')
	gcc -shared -fPIC -O1 -g -Wall -Wextra -Wconversion -Werror -Iwasm -I"$$include" $< -o $@

$(WHEEL): $(C_FILES) $(PY_FILES) $(BRIDGE) pyproject.toml README.md LICENSE \
  build/xbuildenv/.done $(TOOLCHAIN)/build_wheel.sh
	@$(TOOLCHAIN)/need.sh emcc
	$(TOOLCHAIN)/build_wheel.sh build/venv build/xbuildenv dist

# A module without Python, which shares tensors by the exchange protocol alone.
$(EXAMPLE): $(EXAMPLE_FILES) wasm/dlpack.h
	@$(TOOLCHAIN)/need.sh emcc
	echo "[build] example module in C"
	mkdir -p $(@D)
	PATH=$$PATH$${EMSDK:+:$$EMSDK/upstream/emscripten} emcc $(filter %.c,$^) -o $@ \
	  -Iwasm -std=c11 -O2 -Wall -Wextra -Wconversion -Werror --no-entry -sSTANDALONE_WASM \
	  -sALLOW_MEMORY_GROWTH -sINITIAL_MEMORY=8MB -sMAXIMUM_MEMORY=64MB \
	  -sERROR_ON_UNDEFINED_SYMBOLS=0 -sWARN_ON_UNDEFINED_SYMBOLS=0 # let_go is imported

$(BRIDGE): $(TS_FILES) $(NPM)
	@echo "[build] JavaScript for the wheel"
	$(NODE_BIN)/esbuild js/src/pyodide/seam.ts --bundle --minify --format=iife \
	  --global-name=__dlpackWeb --target=es2022 --log-level=warning --outfile=$@

js: $(JS)
$(JS): $(TS_FILES) tsconfig.json $(NPM)
	@echo "[build] JavaScript"
	rm -rf js/dist
	$(NODE_BIN)/tsc --project .

# Always laid out again: it is all links, made in an instant.
site: $(JS) $(WHEEL) $(NUMPY)
	@$(PYTHON_BIN)/python $(TOOLCHAIN)/build_site.py
