"""The table of handles against a model: tables of 16 slots, with 3 bits of generation, so
that both ends are reached often."""

import ctypes
import random
import shlex
import subprocess
import sysconfig
from collections import deque
from ctypes import c_int, c_uint32, c_void_p
from pathlib import Path

import pytest

WASM = Path(__file__).parents[3] / "wasm"
BITS, SLOTS, FREE, GENERATIONS = 4, 16, 4, 8
ENTRIES = f"""
#include "handles.h"
#undef DLW_FREE_SLOTS
#undef DLW_MAX_SLOTS
#define DLW_FREE_SLOTS {FREE}
#define DLW_MAX_SLOTS {SLOTS}
#include "handles.c"

int add(dlw_tensor *tensor, uint32_t *handle) {{
  int status = dlw_handle_add(tensor);
  *handle = tensor->handle;
  return status;
}}
size_t size(void) {{ return sizeof(dlw_tensor); }}
"""


@pytest.fixture
def core(tmp_path, host_python):
    """A table of its own for each test."""
    source = (WASM / "handles.c").read_text()
    assert source.count("#define SLOT_BITS 20") == 1
    source = source.replace("#define SLOT_BITS 20", f"#define SLOT_BITS {BITS}")
    mask = "#define GENERATION_MASK ((1u << (32 - SLOT_BITS)) - 1)"
    assert source.count(mask) == 1
    source = source.replace(mask, f"#define GENERATION_MASK {GENERATIONS - 1}u")
    (tmp_path / "handles.c").write_text(source)
    (tmp_path / "entries.c").write_text(ENTRIES)
    flags = ["-std=c11", "-O1", "-fPIC", "-fsanitize=undefined"]
    flags += ["-fsanitize-undefined-trap-on-error", f"-I{tmp_path}", f"-I{WASM}"]
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
def test_rule_121_a_model_of_a_tiny_table(core, seed):
    """No handle is of two tensors, and a stale one is refused for as many adds as there are
    free slots and generations, however full the table is."""
    choose = random.Random(seed)
    memory = ctypes.create_string_buffer(core.size() * SLOTS)
    unused = [ctypes.addressof(memory) + core.size() * i for i in range(SLOTS)]
    live, stale = {}, deque()  # handle -> tensor; (handle, adds when it became stale)
    adds, most = 0, SLOTS - FREE
    for _ in range(3000):
        busy = choose.choice((0.3, 0.5, 0.7, 0.95))
        for _ in range(choose.randrange(12)):
            if choose.random() < busy:
                tensor, handle = unused[-1], c_uint32()
                if core.add(tensor, handle) < 0:
                    assert len(live) == most
                    continue
                assert len(live) < most
                assert handle.value > 0
                assert handle.value not in live
                live[handle.value] = unused.pop()
                adds += 1
            elif live:
                handle = choose.choice(list(live))
                assert core.dlw_handle_take(handle) == live[handle]
                unused.append(live.pop(handle))
                stale.append((handle, adds))
        while stale and adds - stale[0][1] >= FREE * GENERATIONS:
            stale.popleft()
        for handle, tensor in live.items():
            assert core.dlw_handle_get(handle) == tensor
        for handle, _ in stale:
            assert core.dlw_handle_get(handle) is None
            assert core.dlw_handle_take(handle) is None
    assert adds > 10 * SLOTS * GENERATIONS
