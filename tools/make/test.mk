# The suites, but for those in browsers.

quick: $(VENV)
	@$(PYTHON_BIN)/python tools/quick.py $(ROOM)

# Two at a time, the longest first. What they need comes before (READY), or make would start
# those first that wait for nothing.
test:
	@tools/need.sh cc npm emcc chromium
	$(MAKE) --no-print-directory -j2 $(NATIVE) $(NEEDS_chain) $(NEEDS_arrow) $(LIBRARIES) \
	  $(PYPI_WHEELS) $(if $(WHOLE),$(SOURCES)) $(PATCHED) $(EXAMPLE) $(DAWN) package whole-site
	$(MAKE) --no-print-directory -j2 --output-sync=target READY=1 \
	  test-in-pyodide test-browser test-package test-js test-native

# What the suites need that .ci/run runs after `make test`: the same for them.
.PHONY: inputs
inputs: $(LITE) $(ARRAYS) $(PYPI_WHEELS) $(SOURCES) $(MODELS) $(NODES) $(OLDER) $(LIBRARIES) $(DOCS) $(ASAN) \
  $(FAULTS) $(FUZZERS) $(FUZZ)/hostile.so build/desktop/.done build/interop/.done \
  $(OLD_NUMPYS:%=build/numpy-%/.done)

test-all: export WHOLE := 1
test-all: export WIRE_RUNS := 10000
test-all: test test-asan test-desktop test-dawn test-pyodides test-live test-onnxruntime test-docs test-bundlers test-lite test-widget test-firefox test-webkit test-deno test-node-gpu test-gpu-kit

test-native: $(if $(READY),,$(NATIVE) $(JS))
	@tools/need.sh emcc
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/native tests/tools \
	  $(if $(WHOLE),,--ignore-glob='*/test_mutants*')

# Leaks are not looked for: CPython itself keeps memory until its end. The tests count
# live tensors and references instead, and test-leaks looks. Memory does not stay flat
# here, where freed blocks are kept. --capture=sys lets the sanitizers' reports through.
test-asan: $(if $(READY),,$(ASAN) $(NATIVE))
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
test-leaks: $(NATIVE)
	@tools/need.sh valgrind
	echo "[test] tests/native under valgrind (log: build/valgrind.log)"
	PYTHONMALLOC=malloc valgrind --log-file=build/valgrind.log --num-callers=40 \
	  --fullpath-after= --suppressions=tests/native/valgrind.supp --leak-check=full \
	  --show-leak-kinds=definite $(PYTHON_BIN)/python -m pytest tests/native \
	  -p no:cacheprovider -k "not million"
	ours='/_core\.abi3\.so|wasm\/[a-z]+\.c:/' error='/ at 0x/ && !/definitely lost/'
	sed -E 's/^==[0-9]+== ?//' build/valgrind.log | awk -v RS= \
	  "$$ours || $$error { print \$$0 \"\\n\"; bad = 1 } END { exit bad }"

# Without a driver for Vulkan the cases for the GPU are skipped.
test-js: $(if $(READY),,$(LIBRARIES) $(EXAMPLE) $(DAWN) whole-site)
	@tools/need.sh libvulkan swiftshader && export WEBGPU=required || echo "[skip] GPU cases in Node"
	$(SUITE) node --test $(JS_TESTS)

test-package: $(if $(READY),,$(LIBRARIES) package site chromium)
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package

test-bundlers: package site chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/package/bundlers.py tests/package/nextjs.py \
	  tests/package/runtimes.py

# tinygrad keeps a device and tensors as long as its process lives, so it has one of its own.
WITH_TINYGRAD := tests/desktop/with_tinygrad
PYTEST_DESKTOP := build/desktop/bin/python -m pytest -p no:cacheprovider
DESKTOP = $(PYTEST_DESKTOP) tests/desktop --ignore=$(WITH_TINYGRAD) && $(PYTEST_DESKTOP) $(WITH_TINYGRAD)

# The driver is software: lavapipe, or the one in VK_DRIVER_FILES (tests/desktop/conftest.py).
test-desktop: build/desktop/.done $(MODEL) $(MODELS) $(SOURCES) $(NATIVE)
	@tools/need.sh libvulkan lavapipe
	echo "[test] tests/desktop"
	PYTHONPATH=py $(SUITE) bash -c '$(DESKTOP)'

test-dawn: export BACKEND := dawn
test-dawn: build/desktop/.done $(MODEL) $(MODELS) $(SOURCES) $(NATIVE)
	@tools/need.sh libvulkan swiftshader
	echo "[test] tests/desktop over Dawn"
	PYTHONPATH=py $(SUITE) bash -c '$(DESKTOP)'

test-docs: docs build/desktop/.done $(LITE) $(LIBRARIES) chromium
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/docs

# Deno's WebGPU is wgpu-core: a second implementation.
test-deno: $(EXAMPLE) $(LIBRARIES) $(RUNTIMES) $(DAWN) $(PYPI_WHEELS) whole-site
	@tools/need.sh libvulkan swiftshader lavapipe
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/runtimes -k "deno or missing or refused"

test-node-gpu: $(EXAMPLE) $(LIBRARIES) $(RUNTIMES) $(DAWN) $(PYPI_WHEELS) whole-site
	@tools/need.sh libvulkan swiftshader
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/runtimes -k "node or bun or missing or refused"

test-gpu-kit: $(KIT)
	@tools/need.sh swiftshader lavapipe
	$(SUITE) $(PYTHON_BIN)/python -m pytest tests/kit

fuzz: $(FUZZERS) $(FUZZ)/hostile.so $(ASAN) $(FAULTS) $(NATIVE) $(JS)
	@$(SUITE) $(PYTHON_BIN)/python tests/fuzz/run.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

fuzz-js: site chromium
	@$(SUITE) $(PYTHON_BIN)/python tests/fuzz/js/run.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# It may be ended at any time, and goes on where it was.
# Each part has all that its tests need: a line whose tests are skipped would survive.
MUTANTS_py = build/desktop/.done $(MODELS) $(SOURCES)
MUTANTS_js = $(LIBRARIES) $(EXAMPLE) whole-site chromium
mutants: $(NATIVE) $(MUTANTS) $(if $(QUICK),,$(foreach part,$(or $(PART),c py js),$(MUTANTS_$(part))))
	@if [ -n "$(QUICK)" ]; then
	  exec $(PYTHON_BIN)/python tests/mutants/spot.py $(addprefix --seed=,$(SEED)) $(addprefix --count=,$(COUNT))
	fi
	tools/need.sh libvulkan swiftshader lavapipe && export WEBGPU=required \
	  || echo "[skip] no test of WebGPU meets these mutants"
	$(PYTHON_BIN)/python tests/mutants/run.py $(addprefix --part=,$(PART)) $(if $(KNOWN),--known) \
	  $(addprefix --seed=,$(SEED)) $(addprefix --count=,$(COUNT)) $(addprefix --workers=,$(WORKERS)) \
	  $(addprefix --changed=,$(CHANGED)) $(addprefix --budget=,$(BUDGET))

interop: build/interop/.torch build/interop/.tensorflow interop-light

# The same without PyTorch and TensorFlow (unless they are installed): a minute less, and
# gigabytes.
interop-light: build/interop/.done $(NATIVE) interop-numpy
	@echo "[test] tests/interop"
	table=; if [ -e build/interop/.torch ] && [ -e build/interop/.tensorflow ]; then
	  table="--results=tests/interop/RESULTS.md $$(printf -- '--with-notes=%s ' \
	    build/numpy-*/notes.json)"
	fi
	PYTHONPATH=py $(SUITE) build/interop/bin/python -m pytest tests/interop $$table

# NumPy before 2.1, which speaks DLPack before 1.0; there is none for Python 3.13. It also
# runs the native tests: the package's extra `numpy` allows it. Those of files, where NumPy
# only compares, are for `make interop`.
FEWER = --ignore=tests/native/files --ignore=tests/native/exchange/test_million.py
interop: FEWER =
interop-numpy: $(OLD_NUMPYS:%=build/numpy-%/.done) $(NATIVE)
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
