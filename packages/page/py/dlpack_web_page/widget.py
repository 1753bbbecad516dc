"""The GPU of the page that shows a notebook, with the packages anywidget and websockets.

The kernel may be on another machine than the browser, and need not have a GPU: tensors
travel to the page in pieces, and kernels run there.

In one cell `page = Page()` and `page`, in the next one `await page.ready()`; then
`device=page` works wherever a device is expected. A subclass with an `_esm` of its own is a
widget whose script gets tensors by name.
"""

import sys
from collections.abc import MutableMapping, Sequence
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any

from dlpack_web import Device, Tensor
from dlpack_web.internal import type_of

if sys.platform == "emscripten":
    raise ImportError(
        "dlpack_web_page.widget is for kernels on a server; this Python runs in the page: "
        "`await dlpack_web.webgpu.request_device()` has its GPU, and dlpack_web_page.wire "
        "sends tensors to the script of a widget",
        name="dlpack_web_page.widget",
    )

from ._page.host import Host
from ._page.kernel import describe
from ._page.tensors import Tensors

try:
    import anywidget
except ModuleNotFoundError as error:
    if error.name != "anywidget":
        raise
    raise ModuleNotFoundError(
        "dlpack_web_page.widget needs the package anywidget: pip install anywidget "
        "websockets",
        name="anywidget",
    ) from None

__all__ = ["Page"]

_SCRIPT = Path(__file__).with_name("_widget.js")


class Page(anywidget.AnyWidget):
    """A widget that lends this kernel the GPU of the page that shows it.

    Display it as the result of a cell. Of several pages the first one has the GPU, and the
    next one gets it when that one is closed or reloaded. Tensors of a page that is gone raise
    DeviceLostError: await `ready()`, and upload again.

    Parameters
    ----------
    patience : float
        Seconds that the page may take to answer, while Python waits for it.
    direct : bool or str
        Whether the kernel opens a WebSocket on 127.0.0.1 for the page, which is faster than
        the notebook's own channel. Where the browser runs elsewhere, the address under which
        the page reaches it, with the port's number, or `{port}` for a free one:
        "ws://127.0.0.1:8765/" through a tunnel, "wss://hub.example/user/me/proxy/{port}/". A
        page that cannot reach it uses the notebook's channel.
    **traits
        Those of a subclass.
    """

    _esm = _SCRIPT

    def __init__(
        self, *, patience: float = 60, direct: bool | str = False, **traits: Any
    ) -> None:
        if type(self)._esm is Page._esm and not _SCRIPT.exists():
            raise FileNotFoundError(
                f"{_SCRIPT} is missing: this dlpack_web_page was installed from its sources; "
                "`make js` builds it"
            )
        # ipykernel routes what a page sends to the thread from whose context we sent
        # last: a subshell of the page's, if it has one, where no cell runs.
        self._context: Context | None = None
        self._host = Host(self._post, patience, direct)
        self._tensors = Tensors(self._host)
        try:
            super().__init__(**traits)
        except BaseException:
            self._host.close()
            raise
        self.on_msg(self._receive)

    @property
    def device(self) -> Device:
        """The page's device. The CPU, if the page has no WebGPU.

        Raises
        ------
        BufferError
            No page shows the widget yet.
        DeviceLostError
            The page is gone.
        """
        return self._host.device

    _page_device = device

    @property
    def direct(self) -> bool:
        """Whether tensors go to the page by a WebSocket of the kernel's own."""
        link = self._host.link
        return link is not None and link.is_direct

    @property
    def tensors(self) -> MutableMapping[str, Tensor]:
        """The tensors that the script of the page knows by name: `page.tensors["points"]
        = t` shows one, without a copy. Their holds are the page's own. A page that is
        gone has lost them, and the mapping is empty: show them again after `ready()`."""
        return self._tensors

    async def ready(self, timeout: float | None = 60) -> Device:
        """Waits until a page shows the widget. With `direct`, it also waits until the page is
        connected directly, at most 3 seconds more.

        Parameters
        ----------
        timeout : float, optional
            Seconds; None waits without end.

        Returns
        -------
        Device
            The page's. If the page has no WebGPU, a warning says why, and the device is the CPU:
            the tensors are CPU tensors, and kernels refuse them.

        Raises
        ------
        BufferError
            No page came in time.
        """
        return await self._host.ready(timeout)

    async def canvas(self, tensor: Tensor) -> None:
        """Draws a tensor in the widget.

        Parameters
        ----------
        tensor : Tensor
            Shape (height, width, channels), uint8 or float32, as for `webgpu.to_canvas`.
        """
        if not isinstance(tensor, Tensor):
            raise TypeError(f"canvas draws a Tensor, not {type_of(tensor)}")
        view = self._host.view(tensor)
        link = self._host.backend().link
        await link.answer("canvas", what=describe(view))

    def close(self) -> None:
        """Closes the widget; its tensors then raise DeviceLostError."""
        if "_host" in self.__dict__:
            self._host.close()
        super().close()

    def _post(self, content: dict[str, Any], buffers: Sequence[Any]) -> None:
        context = self._context.copy() if self._context else copy_context()
        context.run(self.send, content, buffers=list(buffers))

    def _receive(self, _: Any, content: Any, buffers: Sequence[Any]) -> None:
        # The first messages may come before the page has its subshell. A frame's context
        # would keep its bytes.
        if (
            isinstance(content, dict)
            and "dlpack_web" in content
            and "frame" not in content
        ):
            self._context = copy_context()
        self._host.receive(content, buffers)
