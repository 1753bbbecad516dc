"""The table of handles replays the sequences of its model: tables of 16 slots, with 3 bits
of generation."""

import ctypes
import json
import shlex
import subprocess
import sys
import sysconfig
from ctypes import c_int, c_uint32, c_void_p
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "handles"))
import model

ENTRIES = """
#include "handles.c"
int add(dlw_tensor *tensor, uint32_t *handle) {
  int status = dlw_handle_add(tensor);
  *handle = tensor->handle;
  return status;
}
size_t size(void) { return sizeof(dlw_tensor); }
"""


@pytest.fixture
def core(tmp_path, host_python):
    """A table of its own for each test."""
    (tmp_path / "entries.c").write_text(ENTRIES)
    flags = ["-std=c11", "-O1", "-fPIC", "-fsanitize=undefined"]
    flags += ["-fsanitize-undefined-trap-on-error", f"-I{ROOT / 'wasm'}"]
    flags += [f"-DDLW_SLOT_BITS={model.SLOT_BITS}", f"-DDLW_FREE_SLOTS={model.FREE}"]
    flags += [f"-DDLW_GENERATION_BITS={model.GENERATION_BITS}"]
    link = shlex.split(sysconfig.get_config_var("LDSHARED"))
    target = tmp_path / "handles.so"
    command = [*link, *flags, tmp_path / "entries.c", "-o", target]
    subprocess.run(command, check=True, timeout=120)
    library = ctypes.CDLL(str(target))
    library.size.restype = ctypes.c_size_t
    library.add.argtypes = (c_void_p, ctypes.POINTER(c_uint32))
    library.add.restype = c_int
    for each in (library.dlw_handle_get, library.dlw_handle_take):
        each.argtypes, each.restype = (c_uint32,), c_void_p
    return library


@pytest.mark.parametrize("seed", range(8))
def test_rule_121_the_table_is_as_its_model(core, seed):
    memory = ctypes.create_string_buffer(core.size() * model.SLOTS)
    unused = [ctypes.addressof(memory) + core.size() * i for i in range(model.SLOTS)]
    live, handle = {}, c_uint32()
    for operation, result in model.operations(seed):
        if operation == -1:
            status = core.add(unused[-1], handle)
            assert (handle.value if status == 0 else 0) == result
            if status == 0:
                live[result] = unused.pop()
        else:
            tensor = live.pop(operation, None)
            assert (tensor is not None) == bool(result)
            assert core.dlw_handle_get(operation) == tensor
            assert core.dlw_handle_take(operation) == tensor
            if tensor is not None:
                unused.append(tensor)
        for each, tensor in live.items():
            assert core.dlw_handle_get(each) == tensor


def test_the_vectors_are_the_models():
    """Those that the tests of JavaScript replay."""
    assert json.loads(model.VECTORS.read_text()) == model.vectors()
