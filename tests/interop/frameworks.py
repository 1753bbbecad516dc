"""The frameworks in one shape: how to make, see and exchange their arrays."""

import ctypes
import importlib
import json
import operator
from pathlib import Path
from typing import ClassVar

import compiled
import numpy as np
import pytest
from forge import legacy, versioned

import dlpack_web as dlw

ROWS = json.loads(Path(__file__).parents[1].joinpath("dtypes.json").read_text("utf-8"))
VECTORS = ("float4_e2m1fnx2", "float32x4")
DTYPES = (*(row["name"] for row in ROWS), *VECTORS)
NUMPYS = tuple(row["name"] for row in ROWS if row["numpy"] == "numpy")
# Before 2.1 it speaks DLPack before 1.0: no versions, no copy=, nothing read-only.
OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
FLOAT8 = tuple(name for name in DTYPES if name.startswith("float8"))


def address(tensor):
    """Of element 0 of a dlpack_web.Tensor."""
    struct = versioned(tensor.__dlpack__(max_version=(1, 0))).dl_tensor
    return (struct.data or 0) + struct.byte_offset


def aligned(values):
    """An ndarray of these values at a multiple of 256 bytes."""
    values = np.asarray(values)
    array = dlw.empty(values.shape, values.dtype).numpy()
    array[...] = values
    return array


class Framework:
    """One framework. The class attributes are what the tests expect of it."""

    title = distribution = module = ""
    writable = True  # its arrays arrive as tensors that may be written
    writes = None  # it can write to the arrays that it makes of ours; None: the same
    shares = True  # our tensor becomes an array over the same memory; else a copy
    read_only = "kept"  # our read-only tensor: kept, ignored, refused
    copy = "copied"  # from_dlpack(tensor, copy=True): copied, aliased, no keyword
    producer_copy = "copied"  # dlw.from_dlpack(array, copy=True): copied, refused
    webgpu = "refused"  # a WebGPU tensor: kept, refused
    lazy = False  # lets go of memory at the next garbage collection only
    refusal = (BufferError, RuntimeError, TypeError)  # what it raises for others
    layouts: ClassVar = {}  # those not shared: copied, refused
    takes = NUMPYS  # dtypes of tensors that it accepts
    narrows: ClassVar = {}  # those that it takes as another dtype
    misreads = ()  # those whose elements it takes for others, without a word
    makes = None  # dtypes of zeros(); None: the same

    def __init__(self, module):
        self.lib = module

    @classmethod
    def load(cls, folder):
        """An instance, or a skip where the framework is not installed.

        folder: where it may write.
        """
        try:
            return cls(importlib.import_module(cls.module))
        except ModuleNotFoundError:
            pytest.skip(f"{cls.distribution} is not installed")

    def from_dlpack(self, x, **keywords):
        return self.lib.from_dlpack(x, **keywords)

    def zeros(self, shape, dtype):
        """An array in memory of the framework's own."""
        return self.lib.zeros(shape, dtype=getattr(self.lib, dtype))

    def dtype_name(self, array):
        """DLPack's name of the array's dtype."""
        return str(array.dtype).rpartition(".")[2]

    def address(self, array):
        """Of element 0."""
        return self.numpy(array).ctypes.data

    def numpy(self, array):
        """A view of an array whose dtype NumPy has."""
        return np.asarray(array)

    def write(self, array, value):
        """Writes element (0, 0)."""
        array[0, 0] = value


class NumPy(Framework):
    title, distribution, module = "NumPy", "numpy", "numpy"
    if OLD_NUMPY:
        title = "NumPy " + ".".join(np.__version__.split(".")[:2])
        writes = False
        read_only = "refused"
        copy = "no keyword"

    def zeros(self, shape, dtype):
        return np.zeros(shape, dtype)  # np.bool is a name of NumPy 2


class ArrayApiStrict(Framework):
    title, distribution = "array-api-strict", "array-api-strict"
    module = "array_api_strict"
    takes = tuple(name for name in NUMPYS if name != "float16")

    def numpy(self, array):
        return np.from_dlpack(array)


class Torch(Framework):
    title, distribution, module = "PyTorch", "torch", "torch"
    read_only = "ignored"
    layouts: ClassVar = {"reversed": "refused"}
    takes = (
        *NUMPYS,
        "bfloat16",
        "complex32",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fnx2",
    )

    def zeros(self, shape, dtype):
        return super().zeros(shape, dtype.replace("fnx2", "fn_x2"))

    def dtype_name(self, array):
        return super().dtype_name(array).replace("fn_x2", "fnx2")

    def address(self, array):
        return array.data_ptr()


class Jax(Framework):
    """Shares memory that is aligned to 64 bytes, and copies the rest."""

    title, distribution, module = "JAX", "jax", "jax"
    writable = False
    lazy = True
    takes = (*NUMPYS, "bfloat16", *FLOAT8)
    makes = (*takes, "float4_e2m1fn")
    copy = "aliased"
    layouts: ClassVar = {
        "unaligned": "copied",
        "every other": "refused",
        "reversed": "refused",
        "broadcast": "refused",
    }

    def from_dlpack(self, x, **keywords):
        return self.lib.dlpack.from_dlpack(x, **keywords)

    def zeros(self, shape, dtype):
        return self.lib.numpy.zeros(shape, dtype)

    def address(self, array):
        return array.unsafe_buffer_pointer()


class TvmFfi(Framework):
    title, distribution = "tvm-ffi", "apache-tvm-ffi"
    module = "tvm_ffi"
    read_only = "ignored"
    copy = "no keyword"
    producer_copy = "refused"
    webgpu = "kept"
    takes = DTYPES
    makes = ("float32",)

    def zeros(self, shape, dtype):
        # It has no memory of its own.
        return self.from_dlpack(np.zeros(shape, dtype))

    def dtype_name(self, array):
        # It carries complex numbers without a name for them.
        return None if "Tensor(" in str(array) else str(array.dtype)

    def address(self, array):
        return array.data_ptr()

    def numpy(self, array):
        return np.from_dlpack(array)

    def write(self, array, value):
        self.numpy(array)[0, 0] = value


class OnnxRuntime(Framework):
    """OrtValues of the CPU; they speak DLPack from before 1.0."""

    title, distribution, module = "ONNX Runtime", "onnxruntime", "onnxruntime"
    writable = False  # DLPack before 1.0 does not say
    read_only = "refused"
    copy = "no keyword"
    layouts: ClassVar = dict.fromkeys(
        ["transposed", "every other", "reversed", "broadcast"], "refused"
    )

    makes = (*(n for n in NUMPYS if not n.startswith("complex")), "bfloat16")
    # ONNX's float8e4m3fn is DLPack's float8_e4m3fn, and so on.
    names: ClassVar = {
        "float": "float32",
        "double": "float64",
        **{name.replace("_", ""): name for name in FLOAT8},
        "float8e8m0": "float8_e8m0fnu",
        "float4e2m1": "float4_e2m1fn",
    }
    takes = (
        *makes,
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
        "int2",
        "int4",
        "uint2",
        "uint4",
    )

    def from_dlpack(self, x, **keywords):
        return self.lib.OrtValue.from_dlpack(x, **keywords)

    def zeros(self, shape, dtype):
        # 16 is ONNX's number of bfloat16, which NumPy lacks.
        wanted = 16 if dtype == "bfloat16" else np.dtype(dtype)
        array = self.lib.OrtValue.ortvalue_from_shape_and_type(shape, wanted)
        ctypes.memset(array.data_ptr(), 0, array.tensor_size_in_bytes())
        return array

    def dtype_name(self, array):
        name = array.data_type().removeprefix("tensor(").removesuffix(")")
        return self.names.get(name, name)

    def address(self, array):
        return array.data_ptr()


class Mlx(Framework):
    """Its backend for the CPU copies whatever it takes, its own arrays, too."""

    title, distribution, module = "MLX", "mlx", "mlx.core"
    writes = shares = False
    read_only = "copied"
    refusal = (ValueError,)
    layouts: ClassVar = {
        **dict.fromkeys(["0 dimensions", "empty", "empty in the middle"], "copied"),
        **dict.fromkeys(["unaligned", "transposed", "every other"], "copied"),
        **dict.fromkeys(["broadcast", "one row", "5 dimensions"], "copied"),
        "reversed": "refused",
    }
    takes = (*(n for n in NUMPYS if n not in ("float64", "complex128")), "bfloat16")
    makes = (*takes, "float64")
    narrows: ClassVar = {"float64": "float32", "complex128": "complex64"}

    def zeros(self, shape, dtype):
        name = "bool_" if dtype == "bool" else dtype
        array = self.lib.zeros(shape, getattr(self.lib, name))
        self.lib.eval(array)
        return array

    def address(self, array):
        return legacy(array.__dlpack__()).dl_tensor.data


class TensorFlow(Framework):
    """Eager tensors of the CPU; it takes capsules only, of DLPack before 1.0."""

    title, distribution, module = "TensorFlow", "tensorflow-cpu", "tensorflow"
    writable = False  # as their buffers say
    read_only = "refused"
    copy = "no keyword"
    producer_copy = "refused"
    layouts: ClassVar = dict.fromkeys(
        ["transposed", "every other", "reversed", "broadcast"], "refused"
    )
    takes = (*NUMPYS, "bfloat16")
    misreads = ("float32x4",)  # it looks at the bits alone

    def __init__(self, module):
        super().__init__(module)
        self.refusal = (*self.refusal, module.errors.OpError)

    def from_dlpack(self, x, **keywords):
        return self.lib.experimental.dlpack.from_dlpack(x.__dlpack__(), **keywords)

    def dtype_name(self, array):
        return array.dtype.name

    def address(self, array):
        return legacy(array.__dlpack__()).dl_tensor.data


class Nanobind(Framework):
    """nb::ndarray, by the functions of extension.cpp."""

    title, distribution, module = "nanobind", "nanobind", "nanobind"
    read_only = "refused"
    copy = "no keyword"
    producer_copy = "refused"
    webgpu = "kept"
    takes = DTYPES
    makes = ("float32",)

    @classmethod
    def load(cls, folder):
        package = Path(super().load(folder).lib.__file__).parent
        return cls(_build_extension(package, folder))

    def from_dlpack(self, x, **keywords):
        return self.lib.pass_on(x, **keywords)

    def zeros(self, shape, dtype):
        assert dtype == "float32"
        return self.lib.zeros(*shape)

    def dtype_name(self, array):
        return None

    def address(self, array):
        return self.lib.address(array)

    def write(self, array, value):
        self.numpy(array)[0, 0] = value


def _build_extension(nanobind, folder):
    """The module of extension.cpp, compiled as nanobind's nb_combined.cpp says."""
    sources = [
        Path(__file__).with_name("extension.cpp"),
        nanobind / "src/nb_combined.cpp",
    ]
    includes = [nanobind / "include", nanobind / "ext/robin_map/include"]
    return compiled.extension("interop_extension", folder, sources, includes)


ALL = [
    NumPy,
    ArrayApiStrict,
    Torch,
    Jax,
    TensorFlow,
    Mlx,
    TvmFfi,
    OnnxRuntime,
    Nanobind,
]
TITLE = operator.attrgetter("title")  # the id of a framework in tests
