"""What programs of users may write: mypy --strict checks it."""

from typing import assert_type

import dlpack_web as dlw
from dlpack_web_page.widget import Page
from dlpack_web_page.wire import Part, Received, RemoteTensor, Sent, Wire, joined


def take(received: Received) -> None:
    assert_type(received.tensor, dlw.Tensor)
    assert_type(received.begin, int)


wire = Wire(lambda header, payload: joined(header, payload), on_tensor=take)
remote = wire.send("x", dlw.empty(3))
assert_type(remote, RemoteTensor)
assert_type(remote.ready, Sent)
assert_type(remote[1:2], Part)
wire.send(3, dlw.empty(3))  # type: ignore[arg-type]


async def show() -> None:
    page = Page(direct=True)
    assert_type(await page.ready(), dlw.Device)
    assert_type(page.tensors["x"], dlw.Tensor)
    await page.canvas(dlw.empty((2, 2, 4), "uint8", device=page.device))
