"""Tensors in pieces over any channel: a socket, a pipe, a worker, a notebook's kernel.

WIRE.md has the format; `dlpack-web-page/wire` is the same in JavaScript.
"""

from ._wire.endpoint import Wire, joined
from ._wire.receiving import Received
from ._wire.sending import Part, RemoteTensor, Sent

__all__ = ["Part", "Received", "RemoteTensor", "Sent", "Wire", "joined"]
