"""How pyarrow takes a Tensor.

It ignores `mask` and `size` for objects that support only the PyCapsule protocol, so
nulls would become elements. It calls `__arrow_array__` first, which refuses these
arguments.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def pyarrow_array(capsules: Callable[..., Any], type_: Any) -> Any:
    """A pyarrow.Array by the PyCapsule protocol; capsules: `__arrow_c_array__`, type_:
    a pyarrow.DataType or None."""
    import pyarrow

    return pyarrow.array(SimpleNamespace(__arrow_c_array__=capsules), type=type_)
