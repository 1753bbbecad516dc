# Environments, packages of npm and PyPI, libraries and models: what builds and tests start from.

.PHONY: chromium
chromium:
	@tools/need.sh chromium

$(VENV): tools/requirements/dev.txt tools/make_venv.sh tools/find_python.sh
	@echo "[setup] Python tools into build/venv"
	tools/make_venv.sh build/venv dev
	touch $@

$(LIBS): tools/requirements/libs.txt tools/make_venv.sh tools/find_python.sh
	@echo "[setup] Python libraries into build/libs"
	tools/make_venv.sh build/libs libs
	ln -sfn libs build/desktop
	touch $@

# PyTorch's usual build brings gigabytes along, so no other suite has it.
build/libs/.frameworks: $(LIBS) $(addprefix tools/requirements/,torch.txt tensorflow.txt)
	@echo "[setup] PyTorch and TensorFlow into build/libs"
	pip="$(LIBS_PYTHON) -m pip install --quiet --disable-pip-version-check"
	$$pip --requirement tools/requirements/torch.txt
	$$pip --require-hashes --requirement tools/requirements/tensorflow.txt
	touch $@

# These NumPys have no wheels for Python 3.13.
build/numpy-%/.done: tools/requirements/numpy-%.txt tools/make_venv.sh tools/find_python.sh
	@rm -rf build/numpy-$* && mkdir -p build/numpy-$*
	if tools/find_python.sh 3.12 >/dev/null 2>&1; then
	  echo "[setup] NumPy $* into build/numpy-$*"
	  tools/make_venv.sh build/numpy-$* numpy-$* 3.12
	fi
	touch $@

$(NPM): package.json package-lock.json
	@tools/need.sh npm
	echo "[setup] npm packages into node_modules"
	$(NPM_CI)
	ln -sfn .. node_modules/dlpack-web # for packages beside it
	touch $@

build/xbuildenv/.done: $(VENV) $(NPM) $(addprefix $(TOOLCHAIN)/,make_xbuildenv.py pyodide_files.py)
	@echo "[setup] cross-build environment for Pyodide"
	$(PYTHON) $(TOOLCHAIN)/make_xbuildenv.py node_modules/pyodide build/xbuildenv
	touch $@

# For each Pyodide in node_modules. Only tests run the others.
$(NUMPY) $(OLDER_NUMPY) $(MORE_NUMPYS): build/numpy/.%: $(VENV) $(NPM) tools/fetch_packages.py $(TOOLCHAIN)/pyodide_files.py
	@rm -rf build/numpy/$*
	$(PYTHON) tools/fetch_packages.py node_modules/$* build/numpy/$*
	touch $@

$(ARRAYS): $(VENV) $(NPM) tools/fetch_packages.py $(TOOLCHAIN)/pyodide_files.py
	@rm -rf build/arrays
	$(PYTHON) tools/fetch_packages.py node_modules/pyodide build/arrays $(ARRAY_PACKAGES)
	touch $@

$(PYPI_WHEELS): tools/requirements/pyodide.txt $(VENV) $(NPM) tools/fetch_wheels.py $(TOOLCHAIN)/pyodide_files.py
	@echo "[setup] wheels for Pyodide, from PyPI, into build/wheels"
	$(PYTHON) tools/fetch_wheels.py node_modules/pyodide build/wheels
	touch $@

# tinygrad's tests, which its wheel lacks.
$(SOURCES): tools/requirements/libs.txt $(VENV)
	@echo "[setup] tinygrad's sources, from PyPI, into build/sources"
	rm -rf build/sources && mkdir -p build/sources
	sed -n '/^tinygrad==/,/^    # via/p' $< >build/sources/requirements.txt
	$(PYTHON) -m pip download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary :all: \
	  --no-build-isolation --dest build/sources --requirement build/sources/requirements.txt
	mkdir build/sources/tinygrad
	tar xf build/sources/tinygrad-*.tar.gz -C build/sources/tinygrad --strip-components 1
	touch $@

# The libraries that tensors are exchanged with, for pages and tests: a file for each.
$(LIBRARIES): $(wildcard web/libraries/*.*) $(NPM)
	@echo "[setup] JavaScript libraries into build/libraries"
	mkdir -p build/libraries && rm -f build/libraries/*.mjs
	cp web/libraries/*.json web/libraries/*.mjs build/libraries
	cd build/libraries
	$(NPM_CI)
	../../$(NODE_BIN)/esbuild *.mjs arrow=apache-arrow jax=@jax-js/jax litert=@litertjs/core ndarray=ndarray \
	  zarrita=zarrita --bundle --splitting --format=esm --minify --target=es2022 --log-level=error --outdir=site --out-extension:.js=.mjs
	link() { ln -sfn ../node_modules/$$2 site/$$1; }
	link ort onnxruntime-web/dist
	link ort-1.26 onnxruntime-web-1.26/dist
	link duckdb @duckdb/duckdb-wasm/dist
	link litert @litertjs/core/wasm
	link pyscript @pyscript/core/dist
	link opencv @techstark/opencv-js/dist
	link transformers-3 transformers-3/dist
	link transformers-4 @huggingface/transformers/node_modules/onnxruntime-web/dist
	touch .done

# Those that speak the exchange protocol themselves, by patches of a package: without an adapter.
build/patched/.done: $(LIBRARIES) $(wildcard packages/*/patches/*.patch) tools/patch_libraries.py | $(VENV)
	@echo "[setup] patched libraries into build/patched"
	$(PYTHON) tools/patch_libraries.py
	cd build/patched
	NODE_PATH=../libraries/node_modules ../../$(NODE_BIN)/esbuild jax=@jax-js/jax zarrita=zarrita --bundle \
	  --splitting --format=esm --target=es2022 --log-level=error --outdir=site --out-extension:.js=.mjs
	ln -sfn ../node_modules/onnxruntime-web/dist/ort.webgpu.mjs site/ort.mjs
	touch .done

# Deno, Node, Bun and Dawn, each a package of npm. In build/dawn there is Dawn for Node alone: the others
# are optional there, and half a gigabyte.
$(RUNTIMES) $(DAWN): build/%/.done: $(addprefix tests/runtimes/package,.json -lock.json)
	@tools/need.sh npm
	echo "[setup] JavaScript runtimes into build/$*"
	mkdir -p build/$* && cp $^ build/$*
	cd build/$*
	$(NPM_CI) $(if $(filter dawn,$*),--omit=optional)
	touch .done

# For `make mutants`.
$(STRYKER): $(addprefix tests/package/package,.json -lock.json)
	@tools/need.sh npm
	echo "[setup] StrykerJS into build/stryker"
	mkdir -p build/stryker && cp $^ build/stryker
	cd build/stryker
	$(NPM_CI)
	touch .done

$(UNIVERSALMUTATOR): tools/requirements/mutants.txt $(VENV)
	@echo "[setup] universalmutator into build/universalmutator"
	rm -rf build/universalmutator
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
	  --target build/universalmutator --requirement $<
	touch $@

$(MODEL): $(LIBS) web/site/digits.py web/site/tflite.py
	@echo "[build] models of pages, into build/model"
	rm -rf build/model
	$(LIBS_PYTHON) web/site/digits.py build/model/site
	touch $@

# The file of columns that the arrow page reads, written by Apache Arrow for JavaScript.
$(MEASUREMENTS): web/pages/arrow/measurements.mjs $(LIBRARIES)
	@echo "[build] measurements, an Arrow file, into build/measurements"
	node web/pages/arrow/measurements.mjs build/measurements/site
	touch $@

# What programs for onnxruntime run, and the node tests of the package onnx.
$(MODELS): $(addprefix tests/models/,make.py building.py estimators.py programs.py texts.py) $(MODEL)
	@$(LIBS_PYTHON) tests/models/make.py build/models
	touch $@

$(NODES): tests/models/node_files.py $(LIBS)
	@rm -rf build/nodes
	$(LIBS_PYTHON) tests/models/node_files.py build/nodes
	touch $@
