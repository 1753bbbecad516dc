"""wasm/ndarray.c, which reads NumPy's arrays where they are, against their buffers."""

import gc
import os
import re
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import numpy as np
import pytest
from conftest import OLD_NUMPY, examples, needs_new_numpy, settle

import dlpack_web as dlw

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis has a native part")
st = hypothesis.strategies

OURS = Path(__file__).parents[3] / "wasm"


# --- the ABI --------------------------------------------------------------------------

FIELDS = {
    ("dlw_npy_array", "PyArrayObject_fields"): "data nd dimensions strides base descr "
    "flags",
    ("dlw_npy_descr", "PyArray_Descr"): "typeobj kind type byteorder type_num",
}

COMPARED = """
#define PY_SSIZE_T_CLEAN
#include "ndarray.h"
#define NPY_TARGET_VERSION NPY_1_22_API_VERSION
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#define SAME(ours, theirs) _Static_assert((ours) == (theirs), #ours " " #theirs)
{fields}
SAME(0x400, NPY_ARRAY_WRITEABLE);
SAME(16, NPY_CLONGDOUBLE);
SAME(15, NPY_CDOUBLE);
SAME(13, NPY_LONGDOUBLE);
SAME(7, NPY_LONG);
SAME(23, NPY_HALF);
SAME(0, NPY_BOOL);
"""


@pytest.mark.usefixtures("host_python")
def test_structs_are_those_of_numpys_header(tmp_path):
    fields = [
        f"SAME(offsetof({ours}, {field}), offsetof({theirs}, {field}));\n"
        f"SAME(sizeof((({ours} *)0)->{field}), sizeof((({theirs} *)0)->{field}));"
        for (ours, theirs), names in FIELDS.items()
        for field in names.split()
    ]
    source = tmp_path / "compared.c"
    source.write_text(COMPARED.replace("{fields}", "\n".join(fields)))
    # NumPy's headers do not know the limited API, which our own are written for.
    includes = [OURS, np.get_include(), sysconfig.get_path("include")]
    command = ["cc", "-std=c11", "-fsyntax-only", *(f"-I{each}" for each in includes)]
    subprocess.run([*command, source], check=True, timeout=120)


OTHER_NUMPY = """
import ctypes, sys, types
import numpy as np
import dlpack_web as dlw
from forge import DESTRUCTOR, new_capsule

kept = []
shared = np.broadcast_arrays(np.zeros(3), np.zeros((2, 3)))[0]

def numpy_is(home, abi):
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(lambda: abi)
    function = ctypes.cast(version, ctypes.c_void_p)
    table = (ctypes.c_void_p * 3)(function, None, id(np.ndarray))
    module = types.ModuleType(home)
    module._ARRAY_API = new_capsule(ctypes.addressof(table), None, DESTRUCTOR())
    for each in "numpy._core._multiarray_umath", "numpy.core._multiarray_umath":
        sys.modules.pop(each, None)
    sys.modules[home + "._multiarray_umath"] = module
    kept.append((version, table))
    dlw.from_buffer(b"an object of another type: the next array is looked at again")

for each in sys.argv[1:]:
    home, abi = each.split(":")
    numpy_is(home, int(abi, 0))
    print(each, dlw.from_dlpack(shared).read_only)
"""

UNKNOWN = [
    "numpy.core:0x1000008",
    "numpy._core:0x2000001",
    "numpy._core:0x3000000",
    "numpy._core:0",
]


@needs_new_numpy
@pytest.mark.parametrize(
    "known", ["numpy.core:0x1000009", "numpy._core:0x1000009", "numpy._core:0x2000000"]
)
def test_arrays_of_an_unknown_abi_are_not_looked_into(host_python, known):
    """They are asked for __dlpack__, which calls elements that share memory writable."""
    done = subprocess.run(
        [host_python, "-c", OTHER_NUMPY, *UNKNOWN, known],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    expected = [*(f"{each} False" for each in UNKNOWN), f"{known} True"]
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")


# --- what is read ---------------------------------------------------------------------

DTYPES = [*"?bhilqBHILQefdgFDGOpP", "S3", "U2", "V5", "M8[s]", "m8[D]", "i4,f8"]
DTYPES += [">i4", ">f8", "<c8"]


class Asked(np.ndarray):
    """An array of a subclass: asked for its buffer, or its __dlpack__."""


@st.composite
def arrays(draw):
    """Arrays as people have them, and as they should not."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    kind = draw(st.sampled_from(["plain", "shifted", "field", "any strides"]))
    if dtype.hasobject or kind == "plain":
        array = np.zeros(shape, dtype)
    elif kind == "shifted":  # not where its dtype wants it
        memory = np.zeros(size + 1, np.uint8)
        array = memory[1:].view(dtype).reshape(shape) if dtype.itemsize else memory
    elif kind == "field":  # steps that are no multiple of the item size
        array = np.zeros(shape, np.dtype([("a", "u1"), ("b", dtype)]))["b"]
    else:
        strides = draw(st.tuples(*(st.integers(0, 40) for _ in shape)))
        memory = np.zeros(1000, np.uint8)[: 3 * 3 * 40 + dtype.itemsize + 8]
        array = np.lib.stride_tricks.as_strided(
            memory[: dtype.itemsize].view(dtype), shape, strides
        )
    steps = [slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in shape]
    array = array[(*steps, ...)]
    array = array.transpose(draw(st.permutations(range(array.ndim))))
    state = draw(st.sampled_from(["as it is", "read-only", "broadcast", "warned of"]))
    if state == "read-only":
        array.flags.writeable = False
    elif state == "broadcast":
        array = np.broadcast_to(array, (2, *array.shape))
    elif state == "warned of":
        array = np.broadcast_arrays(array, np.zeros((2, *array.shape)))[0]
    return array


def told(make, array):
    """All that a tensor of it says, or the error."""
    live = dlw.live_tensors()
    try:
        tensor = make(array)
    except (BufferError, TypeError, ValueError) as error:
        settle(live)
        text = re.sub(r"\bAsked\b|\bnumpy\.ndarray\b|\bndarray\b", "array", str(error))
        return type(error), text.replace("test_ndarray.array", "array")
    with tensor:
        first = np.asarray(tensor).ctypes.data if tensor.size else None
        steps = zip(tensor.shape, tensor.strides, strict=True)
        steps = tuple(step for extent, step in steps if extent != 1)
        return tensor.shape, steps, tensor.dtype, tensor.read_only, first


@hypothesis.settings(max_examples=examples(1500), deadline=None, derandomize=True)
@hypothesis.given(arrays(), st.sampled_from([dlw.from_dlpack, dlw.from_buffer]))
def test_an_array_says_what_its_buffer_or_capsule_says(array, make):
    assert type(array) is np.ndarray
    expected = told(make, array.view(Asked))
    if array.flags.num & 1 << 31 and len(expected) == 5:
        # Elements that share their memory: __dlpack__ calls them writable, buffers do not.
        expected = (*expected[:3], True, expected[4])
    assert told(make, array) == expected


@pytest.mark.parametrize("letters", ["u1", "i2", "f4", "f8", "c16"])
def test_steps_in_bytes_are_steps_in_elements_or_refused(letters):
    memory = np.zeros(200, np.float64).view(letters)
    for step in range(-40, 41):
        first = memory[memory.size // 2 :]
        array = np.lib.stride_tricks.as_strided(first, (2,), (step,))
        whole, rest = divmod(step, array.itemsize)
        if rest == 0:
            with dlw.from_buffer(array) as tensor:
                assert tensor.strides == (whole,)
        else:
            with pytest.raises(BufferError, match="no multiple of the item size"):
                dlw.from_buffer(array)


@pytest.mark.parametrize("make", [dlw.from_dlpack, dlw.from_buffer])
def test_one_reference_is_held_for_as_long_as_the_tensor(make):
    array = np.arange(6.0)
    before = sys.getrefcount(array)
    with make(array) as tensor:
        assert sys.getrefcount(array) == before + 1
        views = [np.from_dlpack(tensor) for _ in range(3)] if not OLD_NUMPY else []
        assert sys.getrefcount(array) == before + 1
    assert sys.getrefcount(array) == before + bool(views)
    del views
    assert sys.getrefcount(array) == before
    for refused in (array.astype(">f8"), np.zeros(3, "M8[s]"), np.zeros(3, object)):
        before = sys.getrefcount(refused)
        with pytest.raises((BufferError, TypeError, ValueError)) as info:
            make(refused)
        del info
        gc.collect()
        assert sys.getrefcount(refused) == before


def test_what_happens_to_the_array_later_does_not_reach_the_tensor():
    array = np.arange(6, dtype=np.int16)
    with dlw.from_dlpack(array) as tensor:
        array.flags.writeable = False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy advises against it, from 2.5 on
            array.shape = (2, 3)
        with pytest.raises(ValueError, match=r"referenc|resize"):
            array.resize(1000)
        assert tensor.shape == (6,)
        assert not tensor.read_only
        assert np.asarray(tensor).tolist() == list(range(6))
