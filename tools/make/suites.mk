# The suites. Of each: what it covers and about how long it takes (`make suite` shows it), its INPUTS, programs that
# it NEEDs, and how to RUN it.

PYTEST := $(PYTHON) -m pytest
LIBS_PYTEST := PYTHONPATH=$(PY_PATH) $(LIBS_PYTHON) -m pytest -p no:cacheprovider
NO_SWIFTSHADER := echo "[skip] GPU cases: no driver for Vulkan"

define SUITES
native        2 min  the C core and Python in this CPython
tools         1 min  the build's scripts
packages      1 min  Python of the packages beside the bridge, in this CPython
asan          4 min  the bridge's native tests under AddressSanitizer and UndefinedBehaviorSanitizer
leaks        45 min  the same under valgrind: memory errors and leaks
js            1 min  TypeScript: unit tests, Pyodide, and GPU cases on Dawn, in Node
package       1 min  the npm package from its tarball: types in four TypeScripts, bundles, pages
bundlers      3 min  Vite, Parcel, Rollup, webpack, Next.js, Deno and Bun find the wheel
in-pyodide    2 min  the native tests in Pyodide, in Chromium
webgpu        3 min  WebGPU from Python and JavaScript in Pyodide, in Chromium
pyodides      4 min  imports, exchange, waiting, interrupts in other versions of Pyodide
browser       1 min  the README's snippets, files, content security policies, in Chromium
pages         4 min  the site's pages but for the landing page, in Chromium
live          2 min  the landing page, in Chromium
adapters      3 min  the adapters and other libraries, in Chromium
onnxruntime   4 min  programs for onnxruntime, and a sample of ONNX's operator tests
lite          4 min  notebooks, PyScript, and array libraries called with Tensors, in Chromium
docs          4 min  every block of the documentation, its links, names, search
widget        4 min  the page's GPU lent to kernels of JupyterLab, Notebook, marimo and to a server
firefox      45 min  tests/browser, those of packages and more, in Firefox
webkit        1 min  CPU tensors in WebKitGTK
deno          5 min  JavaScript and GPU cases in Deno
node-gpu      3 min  the same in Node 24 and 26 with Dawn, and in Bun
desktop       6 min  dlpack_web.webgpu in CPython, over wgpu-py
dawn          1 min  the same over wgpudawn
interop      10 min  NumPy, PyTorch, JAX, ... in CPython
interop-light 2 min  the same without PyTorch and TensorFlow
numpy         3 min  the native tests with NumPy 1.26 and 2.0
without-packages 60 min  each package is removed in a copy; check, test, docs and browser pass there
gpu-kit       9 min  the kit that measures real GPUs (tests/bench/GPU.md), on software GPUs
bench         2 min  the benchmark runs and its results are right; its figures mean nothing here
soak          MINUTES=10: the memory of the landing page stays constant
fuzz-js       SECONDS=60 SEED=n: fuzzers and models of JavaScript and WebGPU
endef
export SUITES

INPUTS_native := $(NATIVE) $(JS)
NEED_native := emcc
RUN_native = $(PYTEST) tests/native
INPUTS_tools := $(INPUTS_native)
RUN_tools := $(PYTEST) tests/tools

INPUTS_packages := $(NATIVE) $(JS)
define RUN_packages
for tests in $(wildcard packages/*/tests/native); do PYTHONPATH=$(PY_PATH) $(PYTEST) $$tests; done
endef

# Leaks are not looked for, because CPython itself keeps memory until its end. The tests count
# live tensors and references instead, and the suite leaks looks. Memory does not stay flat
# here, where freed blocks are kept. --capture=sys lets the sanitizers' reports through.
# Files are Python over the same few functions of C.
INPUTS_asan := $(ASAN) $(NATIVE)
define RUN_asan
export PYTHONPATH=build/asan PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:$${ASAN_OPTIONS:-}
export LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"
$(PYTHON) -c 'import dlpack_web._core as c; assert "/asan/" in c.__file__'
$(PYTEST) $(if $(WHOLE),tests/native,$(addprefix tests/native/,arrow conformance exchange memory tensor)) \
  -p no:cacheprovider --capture=sys -k "not million and not official_ones"
endef

# Every test but those of sheer numbers, and of an interrupt at each place of Python. Memory errors
# anywhere fail; of leaks, those that have our extension in their stack: CPython and others keep
# memory till the end.
INPUTS_leaks := $(NATIVE)
NEED_leaks := valgrind
define RUN_leaks
PYTHONMALLOC=malloc valgrind --log-file=build/valgrind.log --num-callers=40 --fullpath-after= \
  --suppressions=tests/native/valgrind.supp --leak-check=full --show-leak-kinds=definite \
  $(PYTEST) tests/native -p no:cacheprovider \
  -k "not million and not interrupted_anywhere and not each_place"
ours='/_core\.abi3\.so|wasm\/[a-z]+\.c:/' error='/ at 0x/ && !/definitely lost/'
sed -E 's/^==[0-9]+== ?//' build/valgrind.log | awk -v RS= \
  "$$ours || $$error { print \$$0 \"\\n\"; bad = 1 } END { exit bad }"
endef

INPUTS_js := $(LIBRARIES) $(EXAMPLE) $(VECTORS) $(DAWN) $(if $(WHOLE),whole-site,site)
# Some files wait more than they work; Node's own default leaves a core free.
define RUN_js
tools/need.sh libvulkan swiftshader && export WEBGPU=required || $(NO_SWIFTSHADER)
node --test --test-concurrency=$$(nproc) $$(find tests/js $(wildcard packages/*/tests/js) -name '*.test.mjs')
endef

INPUTS_package := $(LIBRARIES) package site chromium
RUN_package := $(PYTEST) tests/package $(wildcard packages/*/tests/package)

INPUTS_bundlers := $(RUNTIMES) package site chromium
RUN_bundlers := $(PYTEST) $(addprefix tests/package/,bundlers.py nextjs.py runtimes.py) $(wildcard packages/*/tests/package/*_in_runtimes.py)

# tests/browser, and which of its parts are suites of their own.
IN_CHROMIUM := $(NEEDS_chain) $(NEEDS_arrow) $(PYPI_WHEELS) $(EXAMPLE) $(PATCHED) whole-site chromium
IN_PYODIDE := $(addprefix tests/browser/hosts/test_,in_pyodide.py webgpu.py)
PAGES := tests/browser/pages tests/browser/libraries/test_renderers.py
LIVE := tests/browser/pages/test_live.py
ADAPTERS := tests/browser/libraries/test_adapters.py
ARRAY_LIBRARIES := tests/browser/libraries/test_array_libraries.py
PYODIDES := tests/browser/hosts/test_pyodides.py
ORT := $(wildcard packages/onnxruntime/tests/browser)
OF_PACKAGES := $(filter-out $(ORT),$(wildcard packages/*/tests/browser))

INPUTS_browser := $(IN_CHROMIUM) $(if $(WHOLE),$(SOURCES))
RUN_browser = $(PYTEST) tests/browser $(if $(WHOLE),$(OF_PACKAGES)) $(patsubst %,--ignore %,$(LIVE) $(ARRAY_LIBRARIES) $(PYODIDES) \
  $(if $(WHOLE),,$(IN_PYODIDE) $(PAGES) $(ADAPTERS)))
INPUTS_in-pyodide := site chromium
RUN_in-pyodide := $(PYTEST) $(word 1,$(IN_PYODIDE)) $(if $(WHOLE),,$(wildcard packages/*/tests/browser/test_wire.py))
INPUTS_webgpu := $(IN_CHROMIUM)
RUN_webgpu := $(PYTEST) $(word 2,$(IN_PYODIDE))
INPUTS_pyodides := $(MORE_NUMPYS) site chromium
define RUN_pyodides
$(PYTHON) tools/build_site.py
$(PYTEST) $(PYODIDES)
endef
INPUTS_pages := $(IN_CHROMIUM) docs
RUN_pages := $(PYTEST) $(PAGES) --ignore $(LIVE)
INPUTS_live := $(NEEDS_live) site chromium
RUN_live := $(PYTEST) $(LIVE)
INPUTS_soak := $(INPUTS_live)
RUN_soak = $(PYTHON) tests/browser/pages/soak.py --minutes $(MINUTES)
INPUTS_adapters := $(IN_CHROMIUM)
RUN_adapters := $(PYTEST) $(ADAPTERS) $(if $(WHOLE),,$(wildcard packages/*/tests/browser/test_conformance.py))
INPUTS_onnxruntime := $(MODELS) $(NODES) $(LIBRARIES) $(ARRAYS) $(IN_CHROMIUM)
RUN_onnxruntime := $(PYTEST) $(ORT)

INPUTS_lite := $(LITE) $(ARRAYS) $(PYPI_WHEELS) $(LIBS) $(NATIVE) chromium
NEED_lite := libvulkan lavapipe
define RUN_lite
$(PYTEST) tests/lite $(if $(WHOLE),,$(patsubst %,--ignore tests/lite/test_%.py,documentation pyscript))
$(if $(WHOLE),$(PYTEST) $(ARRAY_LIBRARIES))
endef

INPUTS_docs := docs $(LIBS) $(LITE) $(LIBRARIES) chromium
RUN_docs = $(PYTEST) tests/docs \
  $(if $(WHOLE),,$(patsubst %,--ignore tests/docs/test_%.py,habits interrupting kernel live))

# A Jupyter server of its own for each run, on a free port of this machine.
INPUTS_widget := $(LIBS) $(NATIVE) $(JS) $(PACKAGE_WHEELS) $(LITE) $(PYPI_WHEELS) chromium
RUN_widget := $(PYTEST) packages/page/tests/widget

INPUTS_firefox := $(IN_CHROMIUM) $(SOURCES) $(INPUTS_widget) package
NEED_firefox := firefox-esr chromium
define RUN_firefox
export BROWSER=firefox
$(PYTEST) tests/browser $(OF_PACKAGES) $(ORT:=/test_sessions.py) $(patsubst %,--ignore %,$(ARRAY_LIBRARIES) $(PYODIDES))
$(PYTEST) tests/package/test_pages.py
$(PYTEST) tests/lite -k tour
$(PYTEST) tests/docs -k interrupted
$(PYTEST) packages/page/tests/widget
endef

INPUTS_webkit := whole-site
NEED_webkit := WebKitWebDriver Xvfb
RUN_webkit := $(PYTEST) tests/browser/hosts/webkit.py

# Deno's WebGPU is wgpu-core: a second implementation.
INPUTS_deno := $(EXAMPLE) $(VECTORS) $(LIBRARIES) $(RUNTIMES) $(DAWN) $(PYPI_WHEELS) whole-site
NEED_deno := libvulkan swiftshader lavapipe
RUN_deno := $(PYTEST) $(wildcard tests/runtimes packages/*/tests/runtimes) -k "deno or missing or refused"
INPUTS_node-gpu := $(INPUTS_deno)
NEED_node-gpu := libvulkan swiftshader
RUN_node-gpu := $(PYTEST) $(wildcard tests/runtimes packages/*/tests/runtimes) -k "node or bun or missing or refused"

# Each package has a process of its own: tinygrad keeps a device and tensors as long as its process lives.
# The driver is software: lavapipe, or the one in VK_DRIVER_FILES (tests/support/on_desktop.py).
INPUTS_desktop := $(LIBS) $(MODEL) $(MODELS) $(if $(WHOLE),$(SOURCES)) $(NATIVE) $(JS)
NEED_desktop := libvulkan lavapipe
define RUN_desktop
$(LIBS_PYTEST) tests/desktop
$(LIBS_PYTEST) $(wildcard packages/page/tests/native/widget/test_tinygrad_page.py)
for tests in $(wildcard packages/*/tests/desktop); do $(LIBS_PYTEST) $$tests; done
endef
INPUTS_dawn := $(INPUTS_desktop)
NEED_dawn := libvulkan swiftshader
define RUN_dawn
export BACKEND=dawn
$(RUN_desktop)
endef

INPUTS_interop := build/libs/.frameworks $(NATIVE)
define RUN_interop
export JAX_PLATFORMS=cpu
$(LIBS_PYTEST) tests/interop $(RESULTS)
endef
INPUTS_interop-light := $(LIBS) $(NATIVE)
RUN_interop-light = $(RUN_interop)
# NumPy before 2.1 speaks DLPack before 1.0. The package's extra `numpy` allows it. Files are the same with any.
INPUTS_numpy := $(OLD_NUMPYS:%=build/numpy-%/.done) $(NATIVE)
define RUN_numpy
for numpy in $(OLD_NUMPYS); do
  venv=build/numpy-$$numpy
  [ -x $$venv/bin/python ] || { echo "[skip] NumPy $$numpy: no Python 3.12 was found"; continue; }
  PYTHONPATH=py $$venv/bin/python -m pytest tests/native -p no:cacheprovider \
    --ignore=tests/native/files $(if $(WHOLE),,--ignore=tests/native/exchange/test_million.py)
  PYTHONPATH=py $$venv/bin/python -m pytest tests/interop -p no:cacheprovider -k numpy --notes=$$venv/notes.json
done
endef

# PACKAGES_OUT="page": without this one alone. What is committed is copied.
INPUTS_without-packages := $(VENV) $(LIBS) $(MODEL)
RUN_without-packages = $(PYTHON) tests/tools/without_packages.py $(PACKAGES_OUT)

INPUTS_gpu-kit := $(KIT)
NEED_gpu-kit := swiftshader lavapipe
RUN_gpu-kit := $(PYTEST) tests/kit

INPUTS_fuzz-js := site chromium
RUN_fuzz-js = $(PYTHON) tests/fuzz/js/run.py --seconds $(SECONDS) $(addprefix --seed ,$(SEED))
INPUTS_bench := $(LIBRARIES) $(PYPI_WHEELS) $(NATIVE) site chromium
RUN_bench := $(PYTHON) tests/bench/bench.py --quick >/dev/null
INPUTS_fuzz := $(FUZZERS) $(ASAN) $(FAULTS) $(NATIVE) $(JS)
RUN_fuzz = $(PYTHON) tests/fuzz/run.py --seconds $(SECONDS) $(addprefix --seed ,$(SEED))

suite: $(if $(NAME),suite-$(NAME))
	@[ -n "$(NAME)" ] || echo "$$SUITES"

fuzz: suite-fuzz

# What is served waits until all inputs of a run with several suites are there: `docs` and `lite` write into it.
.SECONDEXPANSION:
suite-%: $$(INPUTS_$$*) $$(if $$(filter site whole-site docs chromium,$$(INPUTS_$$*)),$(ALL_INPUTS))
	@$(if $(RUN_$*),,$(error There is no suite $*: `make suite` lists them))tools/need.sh $(NEED_$*)
	begun=$$(date +%s)
	mkdir -p build/suites
	echo "[suite] $*: failed" >build/suites/$*.txt
	$(RUN_$*)
	echo "[suite] $*: $$(($$(date +%s) - begun)) s" | tee build/suites/$*.txt

# The longest first: two at a time, as software GPUs use both cores.
in_turn = $(MAKE) --no-print-directory $(2) -j2 --output-sync=target $(addprefix suite-,$(1)) \
  ALL_INPUTS="$(sort $(foreach name,$(1),$(INPUTS_$(name))))"
IN_TEST := native js
# What .ci/run runs after `make test`, and what test-all does.
IN_CI := webgpu desktop docs browser adapters package asan in-pyodide lite packages bench tools
# There browser runs all of tests/browser. Two of the longest come first, or one core waits for them at the end.
IN_ALL := firefox desktop $(filter-out in-pyodide webgpu adapters desktop,$(IN_TEST) $(IN_CI)) live onnxruntime interop-light \
  numpy deno widget pyodides bundlers node-gpu gpu-kit dawn webkit

test:
	@tools/need.sh cc npm emcc chromium
	$(MAKE) --no-print-directory -j3 --output-sync=target $(addprefix suite-,$(IN_TEST))

.PHONY: test-ci
test-ci:
	@$(call in_turn,$(IN_CI))

test-all: export WHOLE := 1
test-all: export WIRE_RUNS := 2000
test-all: # goes on after a suite that failed
	@rm -rf build/suites build/hangs
	$(call in_turn,$(IN_ALL),-k) && failed= || failed=1
	for name in $(IN_ALL); do
	  cat build/suites/$$name.txt 2>/dev/null || echo "[suite] $$name: did not run"
	done
	cat build/hangs/reports.txt 2>/dev/null || true
	[ -z "$$failed" ]
