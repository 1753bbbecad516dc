# Environments, packages of npm and PyPI, libraries and models: what builds and tests start from.

.PHONY: chromium

$(VENV): tools/requirements/dev.txt $(MAKE_VENV)
	@echo "[setup] Python tools into build/venv"
	tools/make_venv.sh build/venv dev
	touch $@

build/locks/.done: tools/requirements/locks.txt $(MAKE_VENV)
	@echo "[setup] uv into build/locks"
	tools/make_venv.sh build/locks locks
	touch $@

$(NPM): package.json package-lock.json
	@tools/need.sh npm
	echo "[setup] npm packages into node_modules"
	$(NPM_CI)
	touch $@

build/xbuildenv/.done: $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,make_xbuildenv.py pyodide_files.py)
	@echo "[setup] cross-build environment for Pyodide"
	$(PYTHON_BIN)/python $(TOOLCHAIN)/make_xbuildenv.py node_modules/pyodide build/xbuildenv
	touch $@

# For a Pyodide in node_modules. Only tests run the older one.
$(NUMPY) $(OLDER_NUMPY): build/numpy/.%: $(VENV) $(NPM) tools/fetch_packages.py $(TOOLCHAIN)/pyodide_files.py
	@rm -rf build/numpy/$*
	$(PYTHON_BIN)/python tools/fetch_packages.py node_modules/$* build/numpy/$*
	touch $@

$(PYPI_WHEELS): tools/requirements/pyodide.txt $(VENV) $(NPM) tools/fetch_wheels.py $(TOOLCHAIN)/pyodide_files.py
	@echo "[setup] wheels for Pyodide, from PyPI, into build/wheels"
	$(PYTHON_BIN)/python tools/fetch_wheels.py node_modules/pyodide build/wheels
	touch $@

# Tests of other projects, which their wheels lack.
$(SOURCES): tools/requirements/desktop.txt $(VENV) tools/fetch_source.py
	@echo "[setup] tinygrad's sources, from PyPI, into build/sources"
	$(PYTHON_BIN)/python tools/fetch_source.py tinygrad build/sources/tinygrad
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
$(PATCHED): $(LIBRARIES) $(wildcard web/libraries/patches/*.patch) tools/patch_libraries.py | $(VENV)
	@echo "[setup] patched libraries into build/patched"
	$(PYTHON_BIN)/python tools/patch_libraries.py
	cd build/patched
	cp ../../web/libraries/{jax,zarrita}.mjs .
	NODE_PATH=../libraries/node_modules ../../$(NODE_BIN)/esbuild jax.mjs zarrita.mjs --bundle \
	  --splitting --format=esm --target=es2022 --log-level=error --outdir=site \
	  --out-extension:.js=.mjs
	ln -sfn ../node_modules/onnxruntime-web/dist/ort.webgpu.mjs site/ort.mjs
	touch .done

# The oldest version of onnxruntime-web that is tested.
$(OLDER): $(addprefix tests/browser/onnxruntime/older/package,.json -lock.json)
	@echo "[setup] older libraries into build/older"
	mkdir -p build/older && cp $^ build/older
	cd build/older
	$(NPM_CI)
	touch .done

# With the NumPy wheel of 314.0.4, which has their ABI.
$(MORE_PYODIDES): $(addprefix tests/browser/hosts/pyodides/package,.json -lock.json) $(VENV) tools/fetch_packages.py $(TOOLCHAIN)/pyodide_files.py
	@tools/need.sh npm
	echo "[setup] other versions of Pyodide into build/pyodides"
	mkdir -p build/pyodides && cp $(filter %.json,$^) build/pyodides
	(cd build/pyodides && $(NPM_CI))
	for folder in build/pyodides/node_modules/pyodide-*; do
	  $(PYTHON_BIN)/python tools/fetch_packages.py $$folder build/pyodides/numpy/$${folder##*/}
	done
	touch $@

# Deno, Node, Bun and Dawn, each a package of npm.
$(RUNTIMES): $(addprefix tests/runtimes/package,.json -lock.json)
	@tools/need.sh npm
	echo "[setup] Deno, Node, Bun and Dawn into build/runtimes"
	mkdir -p build/runtimes && cp $^ build/runtimes
	cd build/runtimes
	$(NPM_CI)
	touch .done

# Without the runtimes, which are optional there and half a gigabyte.
$(DAWN): $(addprefix tests/runtimes/package,.json -lock.json)
	@tools/need.sh npm
	echo "[setup] Dawn for Node into build/dawn"
	mkdir -p build/dawn && cp $^ build/dawn
	cd build/dawn
	$(NPM_CI) --omit=optional
	touch .done

build/numpy-%/.done: tools/requirements/numpy-%.txt $(MAKE_VENV)
	@rm -rf build/numpy-$* && mkdir -p build/numpy-$*
	if tools/find_python.sh 3.12 >/dev/null 2>&1; then
	  echo "[setup] NumPy $* into build/numpy-$*"
	  tools/make_venv.sh build/numpy-$* numpy-$* 3.12
	fi
	touch $@

build/widget/.done: tools/requirements/widget.txt $(MAKE_VENV)
	@echo "[setup] JupyterLab into build/widget"
	tools/make_venv.sh build/widget widget
	touch $@

$(LITE_WIDGETS): tools/requirements/lite_widgets.txt $(VENV)
	@echo "[setup] anywidget for JupyterLite into build/lite/widgets"
	rm -rf $(@D)
	$(PYTHON_BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --platform any --implementation py --dest $(@D) --requirement $<
	touch $@

build/interop/.done: tools/requirements/interop.txt $(MAKE_VENV)
	@echo "[setup] frameworks into build/interop"
	tools/make_venv.sh build/interop interop
	touch $@

build/interop/.torch: build/interop/.done tools/requirements/torch.txt
	@echo "[setup] PyTorch into build/interop"
	build/interop/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement tools/requirements/torch.txt >build/torch.log 2>&1 \
	  || { tail build/torch.log; exit 1; }
	touch $@

build/interop/.tensorflow: build/interop/.done tools/requirements/tensorflow.txt
	@echo "[setup] TensorFlow into build/interop"
	build/interop/bin/python -m pip install --quiet --disable-pip-version-check \
	  --require-hashes --requirement tools/requirements/tensorflow.txt >build/tensorflow.log 2>&1 \
	  || { tail build/tensorflow.log; exit 1; }
	touch $@

build/docs/venv/.done: tools/requirements/docs.txt $(MAKE_VENV)
	@echo "[setup] Sphinx into build/docs"
	tools/make_venv.sh build/docs/venv docs
	touch $@

# TypeDoc brings the TypeScript that it understands.
build/docs/typedoc/.done: $(addprefix web/docs/_tools/typedoc/package,.json -lock.json)
	@tools/need.sh npm
	echo "[setup] TypeDoc into build/docs"
	mkdir -p $(@D) && cp $^ $(@D)
	cd $(@D)
	$(NPM_CI)
	touch .done

build/desktop/.done: tools/requirements/desktop.txt $(MAKE_VENV)
	@echo "[setup] wgpu-py into build/desktop"
	tools/make_venv.sh build/desktop desktop
	touch $@

# The one module that is used needs nothing else.
$(MUTANTS): tools/requirements/mutants.txt $(MAKE_VENV)
	@echo "[setup] universalmutator into build/mutants"
	PIP_NO_DEPS=1 tools/make_venv.sh build/mutants/venv mutants
	touch $@

build/windows/.done: tools/requirements/windows.txt $(MAKE_VENV)
	@echo "[setup] zig into build/windows"
	tools/make_venv.sh build/windows windows
	touch $@

$(MODEL): tools/requirements/model.txt web/site/digits.py web/site/tflite.py $(MAKE_VENV)
	@echo "[setup] scikit-learn, ONNX and onnxruntime into build/model"
	rm -rf build/model
	tools/make_venv.sh build/model/venv model
	build/model/venv/bin/python web/site/digits.py build/model/site
	touch $@

# The file of columns that the arrow page reads, written by Apache Arrow for JavaScript.
$(MEASUREMENTS): web/pages/arrow/measurements.mjs $(LIBRARIES)
	@echo "[build] measurements, an Arrow file, into build/measurements"
	node web/pages/arrow/measurements.mjs build/measurements/site
	touch $@

# What the programs of tests/foreign/onnxruntime run, and the node tests of the package onnx.
$(MODELS): $(addprefix tests/models/,make.py building.py estimators.py programs.py texts.py) $(MODEL)
	@build/model/venv/bin/python tests/models/make.py build/models
	touch $@

$(NODES): tests/models/node_files.py $(MODEL)
	@rm -rf build/nodes
	build/model/venv/bin/python tests/models/node_files.py build/nodes

build/lite/venv/.done: tools/requirements/lite.txt $(MAKE_VENV)
	@echo "[setup] JupyterLite into build/lite"
	rm -rf build/lite
	tools/make_venv.sh build/lite/venv lite
	touch $@

$(ARRAYS): $(VENV) $(NPM) tools/fetch_packages.py $(TOOLCHAIN)/pyodide_files.py
	@rm -rf build/arrays
	$(PYTHON_BIN)/python tools/fetch_packages.py node_modules/pyodide build/arrays $(ARRAY_PACKAGES)
	touch $@

chromium:
	@tools/need.sh chromium
