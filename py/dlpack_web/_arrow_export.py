"""Tensors for Arrow's libraries, which ask for the capsules of its C data interface."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from . import _core

if TYPE_CHECKING:
    from typing_extensions import CapsuleType


class ArrowExport:
    """Arrow's protocols, for a Tensor."""

    __slots__ = ()

    def __arrow_c_array__(
        self, requested_schema: object = None
    ) -> "tuple[CapsuleType, CapsuleType]":
        """The capsules of Arrow's C data interface; see `to_arrow`.

        requested_schema: None, or the capsule of an ArrowSchema of the Tensor's own
        type; names of fields do not matter. Elements are not converted: any other type,
        extension types included, raises BufferError.

        >>> t = dlw.empty(3)
        >>> schema, array = t.__arrow_c_array__()
        >>> len(t.__arrow_c_array__(requested_schema=schema))
        2
        """
        tensor = cast(_core.Tensor, self)
        return _core._to_arrow(tensor, None, requested_schema)

    def __arrow_array__(self, type: Any = None) -> Any:
        """A pyarrow.Array of the elements. pyarrow calls it first. It would ignore
        `mask` and `size` for objects with only `__arrow_c_array__`; here they raise
        ValueError.
        """
        import pyarrow

        capsules = SimpleNamespace(__arrow_c_array__=self.__arrow_c_array__)
        return pyarrow.array(capsules, type=type)
