"""Large memory of our own is asked for in huge pages, as NumPy's is."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import dlpack_web as dlw

pytestmark = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="only Linux is asked for huge pages",
)
MIDDLE = 1 << 25  # from 32 MiB on glibc maps each block by itself


def asked(address):
    """Whether the kernel keeps that flag for the memory there."""
    parts = Path("/proc/self/smaps").read_text().split("\nVmFlags:")
    for before, after in itertools.pairwise(parts):
        begin, end = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) ", before, re.MULTILINE)[-1]
        if int(begin, 16) <= address < int(end, 16):
            return "hg" in after.split("\n")[0].split()
    raise LookupError(f"{address:#x} is not mapped")


def test_large_memory_is_in_huge_pages():
    array = np.empty(2 * MIDDLE, "uint8")
    assert asked(array.ctypes.data + MIDDLE)
    with dlw.empty(2 * MIDDLE, "uint8") as tensor:
        assert asked(tensor.numpy().ctypes.data + MIDDLE)
    with (
        dlw.from_dlpack(array[::2]) as strided,
        dlw.from_dlpack(strided, copy=True) as packed,
    ):
        assert asked(packed.numpy().ctypes.data + MIDDLE // 2)
