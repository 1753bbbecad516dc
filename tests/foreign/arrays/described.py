"""What a value is, in plain tuples that compare: with every element, dtype and shape.

A Tensor is described as the ndarray that it stands for.
"""

import io
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import dlpack_web as dlw


def described(value: Any) -> Any:
    if isinstance(value, (dlw.Tensor, np.ndarray, np.generic)):
        return _array(value)
    if isinstance(value, (np.dtype, dlw.DType)):
        return ("dtype", np.dtype(value).str)
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(described, value))
    if isinstance(value, dict):
        return ("dict", *((described(k), described(v)) for k, v in value.items()))
    if isinstance(value, io.BytesIO):
        return ("file", value.getvalue())
    if isinstance(value, (bytes, bytearray, memoryview)):
        return (type(value).__name__, bytes(value))
    for kind in type(value).__mro__:
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if name in _KINDS:
            return (name, *map(described, _KINDS[name](value)))
    return re.sub(r" at 0x\w+", "", f"{type(value).__name__} {value!r}")


def _array(value: Any) -> Any:
    """A number of an array is that array without dimensions. Masks of masked arrays count."""
    array = np.asarray(value)
    if array.dtype.hasobject:
        return ("array", "object", array.shape, described(array.tolist()))
    kind = type(value).__name__ if isinstance(value, np.ndarray) else "ndarray"
    mask = np.ma.getmaskarray(value).tobytes() if kind == "MaskedArray" else b""
    return (kind, array.dtype.str, array.shape, array.tobytes(), mask)


# By package and class: what there is to see.
_KINDS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "pandas.Series": lambda x: (x.name, str(x.dtype), x.tolist(), x.index),
    "pandas.Index": lambda x: (list(x.names), str(x.dtype), x.tolist()),
    "pandas.DataFrame": lambda x: (
        x.columns,
        x.index,
        *(x.iloc[:, i] for i in range(x.shape[1])),
    ),
    "pyarrow.Array": lambda x: (str(x.type), x.null_count, x.to_pylist()),
    "pyarrow.ChunkedArray": lambda x: (str(x.type), *x.chunks),
    "pyarrow.Table": lambda x: (str(x.schema), *x.columns),
    "pyarrow.RecordBatch": lambda x: (str(x.schema), *x.columns),
    "pyarrow.Tensor": lambda x: (x.to_numpy(), x.dim_names),
    "pyarrow.Buffer": lambda x: (x.to_pybytes(),),
    "polars.Series": lambda x: (x.name, str(x.dtype), x.to_list()),
    "polars.DataFrame": lambda x: tuple(x.get_columns()),
    "arro3.Array": lambda x: (str(x.type), x.to_pylist()),
    "nanoarrow.Array": lambda x: (str(x.schema), x.to_pylist()),
    "xarray.DataArray": lambda x: (
        x.name,
        x.dims,
        x.attrs,
        x.values,
        {str(name): each.values for name, each in x.coords.items()},
    ),
    "xarray.Dataset": lambda x: (
        x.attrs,
        {str(name): each for name, each in x.variables.items()},
    ),
    "xarray.Variable": lambda x: (x.dims, x.attrs, x.values),
    "dask.Array": lambda x: (x.chunks, str(x.dtype), x.compute()),
    "zarr.Array": lambda x: (x.chunks, x.attrs.asdict(), x[...]),
    "h5py.Dataset": lambda x: (x.chunks, dict(x.attrs), x[()]) if x else ("closed",),
    "PIL.Image": lambda x: (x.mode, x.size, x.tobytes()),
    "scipy.spmatrix": lambda x: (x.format, x.toarray()),
    "scipy.sparray": lambda x: (x.format, x.toarray()),
}
