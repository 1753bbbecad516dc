# Programs, files whose presence says that a step is done, and lists of sources.

TOOLCHAIN := wasm/toolchain
PYTHON := build/venv/bin/python
LIBS_PYTHON := build/libs/bin/python
NODE_BIN := node_modules/.bin
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
VENV := build/venv/.done
LIBS := build/libs/.done
NPM := node_modules/.done
NUMPY := build/numpy/.pyodide
SNAPSHOT := build/snapshot.bin
OLDER_NUMPY := build/numpy/.pyodide-0.29
MORE_NUMPYS := $(addprefix build/numpy/.pyodide-314.0.,0 7)
OLD_NUMPYS := 1.26 2.0
NATIVE := py/dlpack_web/_core.abi3.so
ASAN := build/asan/dlpack_web/_core.abi3.so
FAULTS := build/faults/dlpack_web/_core.abi3.so
# Where the compiler makes 32-bit code that this machine runs.
FUZZERS := build/fuzz/core64 $(if $(filter x86_64,$(shell uname -m)),build/fuzz/core32) build/fuzz/hostile.so
BRIDGE := py/dlpack_web/_bridge.js
WHEEL := dist/wheel.json
PACKAGE_WHEELS := dist/packages.json
JS := js/dist/index.js
LIBRARIES := build/libraries/.done
# If a package has patches.
PATCHED := $(if $(wildcard packages/*/patches),build/patched/.done)
RUNTIMES := build/runtimes/.done
DAWN := build/dawn/.done
STRYKER := build/stryker/.done
UNIVERSALMUTATOR := build/universalmutator/.done
KIT := build/dlpack-web-gpu-kit.tar.xz
MODEL := build/model/.done
MEASUREMENTS := build/measurements/.done
PYPI_WHEELS := build/wheels/.done
SOURCES := build/sources/.done
MODELS := build/models/.done
NODES := build/nodes/.done
LITE := build/lite/.done
ARRAYS := build/arrays/.done
EXAMPLE := build/example/example.wasm
VECTORS := build/vectors.json
# What single pages need besides the site.
NEEDS_chain := $(LIBRARIES) $(MODEL)
NEEDS_arrow := $(LIBRARIES) $(MEASUREMENTS)
NEEDS_live := $(LIBRARIES) $(MODEL)
NEEDS_onnxruntime := $(LIBRARIES) $(MODEL)
NEEDS_train := $(PYPI_WHEELS) $(MODEL)
NEEDS_lite := $(LITE)
NEEDS_pyscript.eval := $(LITE)
NEEDS_pyscript_worker.eval := $(LITE)
# What the notebooks of JupyterLite import, of Pyodide's own packages, and what tests of array libraries do.
LITE_PACKAGES := numpy matplotlib pillow kiwisolver contourpy fonttools cycler pyparsing \
  python-dateutil pytz six packaging micropip
ARRAY_PACKAGES := $(filter-out numpy micropip,$(LITE_PACKAGES)) pandas scipy scikit-learn joblib threadpoolctl

KIT_FILES := $(shell find tests/kit tests/bench tests/browser tests/runtimes -name '*.py' -o -name '*.mjs' -o -name '*.sh')
C_FILES := $(wildcard wasm/*.c wasm/*.h)
EXAMPLE_FILES := $(wildcard wasm/example/*.c wasm/example/*.h)
FUZZ_FILES := $(wildcard tests/fuzz/core/*.c tests/fuzz/core/*.h)
C_TESTS := $(wildcard tests/native/*/*.c tests/fuzz/*.c wasm/toolchain/windows/*.h) $(FUZZ_FILES) $(EXAMPLE_FILES)
# Those in Python.
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))
# Where Python finds the bridge and the packages.
empty :=
PY_PATH := $(subst $(empty) ,:,$(strip py $(wildcard packages/*/py)))
PACKAGE_FILES := $(if $(PACKAGES),$(shell find $(PACKAGES:=/py) -name '*.py')) $(wildcard packages/*/*.*)
PY_FILES := $(shell find py/dlpack_web -name '*.py' -o -name '*.pyi' -o -name py.typed)
TS_FILES := $(shell find js/src -name '*.ts')
# Those in JavaScript; js/dist is built again where a source of theirs changed.
PACKAGE_JS := $(patsubst %/package.json,%,$(wildcard packages/*/package.json))
PACKAGE_TS := $(shell find js/src $(PACKAGE_JS:=/js/src) -name '*.ts') $(wildcard packages/*/js/tsconfig.json)
