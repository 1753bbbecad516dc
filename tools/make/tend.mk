# Format, lint, types, locks; and the tables that suites write.

.PHONY: check-c check-python check-js check-locks check-imports check-english check-sizes

check: check-c check-python check-js check-imports check-locks check-english check-sizes

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
	node tools/check_workflows.mjs

check-locks: $(VENV)
	$(PYTHON_BIN)/python tools/check_locks.py

check-imports: $(VENV)
	$(PYTHON_BIN)/python tools/check_imports.py

check-english: $(VENV)
	$(PYTHON_BIN)/python tools/check_english.py

check-sizes: $(WHEEL)
	$(PYTHON_BIN)/python tools/check_sizes.py

fix: $(VENV) $(NPM)
	$(PYTHON_BIN)/clang-format -i $(C_FILES) $(C_TESTS)
	$(PYTHON_BIN)/ruff check --fix
	$(PYTHON_BIN)/ruff format
	$(NODE_BIN)/biome check --write

# Those that the others follow (-c) come first. Old NumPys have no versions for all Pythons.
locks: build/locks/.done
	@for name in locks dev docs interop tensorflow model lite desktop widget mutants pyodide windows $(OLD_NUMPYS:%=numpy-%); do
	  echo "[locks] tools/requirements/$$name.txt"
	  case $$name in
	  numpy-*) all= ;;
	  mutants | pyodide) all="--universal --no-deps" ;; # the rest is not needed, or comes with Pyodide
	  *) all=--universal ;;
	  esac
	  build/locks/bin/uv pip compile --quiet --no-config $$all --python-version 3.12 \
	    --generate-hashes --only-binary :all: --emit-build-options \
	    --custom-compile-command "make locks" \
	    tools/requirements/$$name.in --output-file tools/requirements/$$name.txt
	done

where-it-runs: $(VENV)
	$(PYTHON_BIN)/python tools/where_it_runs.py

array-tables: $(NATIVE)
	@$(PYTHON_BIN)/python tests/native/attributes.py

# The tests that onnx itself has, of single operators: minutes, so the suites run a sample of them.
onnx-table: $(NODES) $(LIBRARIES) site chromium
	@$(PYTHON_BIN)/python tests/models/node_table.py

onnxruntime-names: $(MODELS) $(LIBRARIES) site chromium
	NAMES=write $(PYTHON_BIN)/python -m pytest -q $(ONNXRUNTIME)/test_builds.py -k every_name

foreign-results: $(MODELS) $(LIBRARIES) $(ARRAYS) site chromium
	FOREIGN=write $(PYTHON_BIN)/python -m pytest -q $(FOREIGN_ORT)

foreign-arrays: export PROGRAMS := write
foreign-arrays: build/interop/.done build/desktop/.done $(ARRAYS) $(PYPI_WHEELS) $(NATIVE) site chromium
	@rm -f tests/foreign/arrays/outcomes.json
	PYTHONPATH=py build/interop/bin/python -m pytest -q tests/interop/test_programs.py
	PYTHONPATH=py build/desktop/bin/python -m pytest -q tests/desktop/test_array_programs.py
	$(PYTHON_BIN)/python -m pytest -q $(ARRAY_LIBRARIES) -k program
