# Checks, tables, measurements and releases.

.PHONY: check-generated check-c check-python check-js check-sizes

check:
	@$(MAKE) --no-print-directory -j3 --output-sync=target check-generated check-c check-python check-js check-sizes

generate: $(VENV) $(NPM)
	@$(PYTHON) tools/generate.py

check-generated: $(VENV) $(NPM)
	@$(PYTHON) tools/generate.py --check

# tsort names the files of a cycle of #includes. Formats with a length, such as "y#", fail in Python before 3.13
# if they are compiled with its headers.
check-c: $(VENV)
	@build/venv/bin/clang-format --dry-run -Werror $(C_FILES) $(C_TESTS)
	grep -oE '^#include "\w+' wasm/*.[ch] | sed -E 's,wasm/(\w+)\..*"(\w+),\1 \2,' | awk '$$1 != $$2' | tsort >/dev/null
	! grep -nE '"[^"]*[suyz]#[^"]*",' wasm/*.[ch]

check-python: $(VENV)
	@build/venv/bin/ruff format --check
	build/venv/bin/ruff check
	MYPYPATH=$(PY_PATH) build/venv/bin/mypy py tools wasm/toolchain tests/typing
	for package in $(PACKAGES); do MYPYPATH=$(PY_PATH) build/venv/bin/mypy $$package/py $$package/tests/typing; done
	$(PYTHON) tools/check_packages.py
	PYTHONPATH=py build/venv/bin/lint-imports --no-logo --no-cache

# tsort names the folders of a cycle of imports; types are not in the built files.
check-js: package
	@$(NODE_BIN)/biome check --error-on-warnings
	grep -oE ' from "\.\./\w+/' js/dist/webgpu/*/*.js | sed -E 's,.*webgpu/(\w+)/.*"\.\./(\w+)/,\1 \2,' | tsort >/dev/null
	for package in . $(PACKAGE_JS); do $(NODE_BIN)/publint --strict $$package; done
	for tarball in dist/*.tgz $(if $(PACKAGE_JS),dist/packages/*.tgz); do $(NODE_BIN)/attw --quiet --profile esm-only $$tarball; done
	node tools/check_workflows.mjs
	! git grep -nE '"resolved": "http|https?://' -- '*package-lock.json' tools/requirements | grep -v '"url": "'

check-sizes: $(WHEEL) $(PACKAGE_WHEELS)
	@$(PYTHON) tools/check_sizes.py

fix: $(VENV) $(NPM)
	@build/venv/bin/clang-format -i $(C_FILES) $(C_TESTS)
	build/venv/bin/ruff check --fix
	build/venv/bin/ruff format
	$(NODE_BIN)/biome check --write

# The folders of tests that tests_of.txt has for the files in $(1).
define folders_of
grep -v '^#' tools/make/tests_of.txt | while read -r source tests; do
  ! grep -q "^$$source" <<<"$(1)" || echo "$$tests"; done | xargs -n1 | sort -u
endef

# The tests of the folders whose sources or tests differ from main.
quick: $(NATIVE) $(JS) $(VECTORS)
	@changed=$$(git diff --name-only $$(git merge-base main HEAD 2>/dev/null || echo HEAD); git ls-files --others --exclude-standard)
	folders=$$($(call folders_of,$$changed))
	native=$$(grep -E '^tests/(native|tools)' <<<"$$folders" || true) js=$$(grep '/\?tests/js' <<<"$$folders" || true)
	echo "[quick] $${folders:-nothing changed that these have tests of}" | xargs
	[ -z "$$native" ] || $(PYTEST) -q $$native
	[ -z "$$js" ] || node --test --test-reporter=dot $$(find $$js -name '*.test.mjs')

FILE_py := py/dlpack_web/_layout/dtype.py
FILE_js := js/src/core/dtype.ts
FILE_c := wasm/layout.c
MUTANTS_py := $(NATIVE) $(LIBS)
MUTANTS_js := $(INPUTS_js) $(STRYKER)
MUTANTS_c := $(NATIVE) $(UNIVERSALMUTATOR)

mutants: $(MUTANTS_$(WHAT))
	@$(if $(MUTANTS_$(WHAT)),,$(error WHAT= has to be py, js or c))file=$(or $(FILE),$(FILE_$(WHAT)))
	tools/mutants.sh $(WHAT) $$file "$(or $(TESTS),$$($(call folders_of,$$file) | xargs))" $(or $(COUNT),50)

# The first is what the others follow (-c). Old NumPys have no versions for all Pythons; the rest of what the wheels
# for Pyodide need comes with Pyodide.
locks: $(LIBS)
	@for name in dev libs tensorflow pyodide $(OLD_NUMPYS:%=numpy-%); do
	  echo "[locks] tools/requirements/$$name.txt"
	  case $$name in
	  numpy-*) all= ;;
	  pyodide) all="--universal --no-deps" ;;
	  *) all=--universal ;;
	  esac
	  build/libs/bin/uv pip compile --quiet --no-config $$all --python-version 3.12 --generate-hashes \
	    --only-binary :all: --emit-build-options --custom-compile-command "make locks" \
	    tools/requirements/$$name.in --output-file tools/requirements/$$name.txt
	done

# --- tables ---

WRITE_interop = $(MAKE) --no-print-directory suite NAME=numpy WHOLE=1
WRITE_interop += && $(MAKE) --no-print-directory suite NAME=interop RESULTS="--results=tests/interop/RESULTS.md $(OLD_NUMPYS:%=--with-notes=build/numpy-%/notes.json)"
WRITE_arrays := $(PYTHON) tests/native/attributes.py
WRITE_onnxruntime := NAMES=write $(PYTEST) -q $(ORT)/test_builds.py -k every_name
WRITE_foreign := FOREIGN=write $(PYTEST) -q $(ORT)/test_foreign_onnxruntime.py

tables: $(NATIVE) $(LIBS) $(NODES) $(MODELS) $(LIBRARIES) $(ARRAYS) $(PYPI_WHEELS) site chromium
	@$(if $(WRITE_$(WHAT)),,$(error WHAT= has to be one of $(sort $(patsubst WRITE_%,%,$(filter WRITE_%,$(.VARIABLES))))))
	$(WRITE_$(WHAT))

# --- measurements ---

MEASURE_desktop := $(LIBS_PYTHON) tests/desktop/timing.py
MEASURE_lite := $(PYTHON) tests/lite/timing.py 5
MEASURE_widget := $(PYTHON) packages/page/tests/widget/timing.py
BENCH_NEEDS := $(LIBRARIES) $(PYPI_WHEELS) site
BENCH_NEEDS_desktop := $(LIBS)
BENCH_NEEDS_lite := $(LITE) site
BENCH_NEEDS_widget := $(LIBS) $(JS)

bench: $(NATIVE) $(or $(BENCH_NEEDS_$(WHAT)),$(BENCH_NEEDS)) chromium
	@$(or $(MEASURE_$(WHAT)),$(PYTHON) tests/bench/bench.py $(if $(WHAT),--only "$(WHAT)"))

gpu-kit: $(KIT)

$(KIT): $(LIBRARIES) $(RUNTIMES) $(JS) $(WHEEL) $(NUMPY) $(KIT_FILES) | site
	@tools/need.sh libvulkan
	echo "[build] the kit for machines with a GPU (a minute)"
	$(PYTHON) tests/kit/build.py

# --- releases, and what is published ---

release: $(or $(addprefix release-,$(WHAT)),release-files)

.PHONY: release-files release-check release-site gpu-kit
release-files: package $(LIBS)
	@$(PYTHON) tools/release.py build dist/release

# A clone gives the same bytes, and what was made installs where nothing else is.
release-check: release-files
	@$(PYTHON) tools/release.py version --tag=$(TAG)
	rm -rf build/release
	git clone --quiet . build/release
	$(MAKE) --no-print-directory -C build/release release WHAT=
	diff --recursive dist/release build/release/dist/release
	$(PYTHON) tools/release.py install dist/release
	rm -rf build/release

# The site is of links.
release-site: docs $(LITE) $(LIBRARIES) $(MODEL) $(NEEDS_arrow)
	@rm -rf build/pages
	cp -RL build/site build/pages

clean:
	rm -rf build dist js/dist packages/*/js/dist node_modules py/*.egg-info $(NATIVE) $(BRIDGE)
