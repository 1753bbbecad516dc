"""The tensors that the script of a page knows by name (js/src/widget/tensors.ts)."""

from collections.abc import Iterator, MutableMapping

from dlpack_web import Tensor
from dlpack_web.backends import View
from dlpack_web.internal import is_broken, type_of

from .host import Host
from .kernel import describe


class Tensors(MutableMapping[str, Tensor]):
    """Tensors on the device of a page, by the names that the page's script uses.

    `tensors[name] = t` shows a tensor to the script, without a copy, and `del
    tensors[name]` ends that. The page has a hold of its own: `t.release()` leaves it.
    `tensors[name]` is another hold on the same memory. Both are done after all earlier
    operations, and reading takes no message.

    BufferError: no page shows the widget yet, it has no WebGPU, or the tensor is not on
    its device. DeviceLostError: the page is gone. What it showed is lost then, and the
    mapping is empty.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    def __setitem__(self, name: str, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"a page is given Tensors, not {type_of(tensor)}: use "
                "dlw.from_dlpack(x, device=page)"
            )
        _check_name(name)
        link = self._host.backend().link
        view = self._host.view(tensor)
        link.give(name, tensor[...], describe(view))

    def __delitem__(self, name: str) -> None:
        link = self._host.link
        if link is None or name not in link.given:
            raise KeyError(name)
        link.give(name, None, None)

    def __getitem__(self, name: str) -> Tensor:
        return self._given()[name][...]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._given()])

    def __len__(self) -> int:
        return len(self._given())

    def __contains__(self, name: object) -> bool:
        return name in self._given()

    def __repr__(self) -> str:
        found = (f"{name!r}: {View(t)}" for name, t in self._given().items())
        return f"<tensors of a page: {', '.join(found) or 'none'}>"

    def _given(self) -> dict[str, Tensor]:
        link = self._host.link
        return {} if link is None else link.given


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor is a str, not {type_of(name)}")
    if is_broken(name):
        raise ValueError(f"{name!r} cannot be sent: it is not Unicode text")
