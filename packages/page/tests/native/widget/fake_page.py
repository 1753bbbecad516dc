"""A page without a browser: the same messages, with NumPy for a GPU. `Channel` may lose,
repeat and reorder what both sides send."""

import asyncio
import gc
import os
import time

import numpy as np

from dlpack_web_page._page.ordered import Ordered
from dlpack_web_page.wire import Wire

LIMITS = {
    "maxBufferSize": 2**28,
    "maxComputeWorkgroupsPerDimension": 65535,
    "maxStorageBufferBindingSize": 2**27,
    "maxUniformBufferBindingSize": 65536,
    "minStorageBufferOffsetAlignment": 256,
    "minUniformBufferOffsetAlignment": 256,
}
FACTS = {"webgpu": True, "limits": LIMITS, "features": [], "adapter": "a fake"}


class Channel:
    """Messages between a kernel's Host and pages; `deliver` passes some on. With an rng
    it damages their order."""

    def __init__(self, rng=None):
        self.rng, self.host, self.pages = rng, None, []
        self.queue = []

    def to_pages(self, content, buffers):
        """What the kernel sends goes to all pages, later, as hosts send it."""
        self.queue.append((None, content, buffers))

    def to_kernel(self, page, content, buffers=()):
        self.queue.append((page, content, [bytes(each) for each in buffers]))

    def deliver(self, most=None):
        """Delivers until nothing is left, or so many messages."""
        while self.queue and (most is None or most > 0):
            most = None if most is None else most - 1
            at = 0 if self.rng is None else self.rng.randrange(min(len(self.queue), 4))
            page, content, buffers = self.queue.pop(at)
            if self.rng is not None:
                if self.rng.random() < 0.1:
                    continue  # lost
                if self.rng.random() < 0.1:
                    self.queue.append((page, content, buffers))
            if page is not None:
                self.host.receive(content, buffers)
            else:
                for each in self.pages:
                    each.receive(content, buffers)


#: All of a test.
MADE = []


def end_all():
    """Closes what a test has made."""
    while MADE:
        page = MADE.pop()
        page.wire.close()
        if page.channel.host is not None:
            page.channel.host.close()
        page.channel.pages.clear()
        page.channel.queue.clear()


class FakePage:
    """It does what work.ts does. A kernel whose entry is "double" doubles what it
    writes, as float32."""

    def __init__(self, channel, facts=FACTS):
        self.channel, self.facts = channel, facts
        self.own = os.urandom(8).hex()
        self.kernel = ""
        self.said = []
        MADE.append(self)
        channel.pages.append(self)
        self.begin()

    def begin(self):
        self.orders = Ordered(self.post)
        self.wire = Wire(self.send_frame, on_tensor=self.arrive)
        self.tensors, self.arrived, self.kernels, self.queue = {}, {}, {}, []
        self.cancelled, self.freed = set(), set()
        self.ran = []  # the sites of calls
        self.recorded = []  # of empty tensors
        self.given, self.gives = {}, []  # what its script knows by name

    def hello(self):
        self.post({"hello": self.facts})

    def post(self, content, buffers=()):
        if self not in self.channel.pages:  # it is gone
            return
        head = {"dlpack_web": "1", "from": self.own, "to": self.kernel}
        self.channel.to_kernel(self, {**head, **content}, buffers)

    def send_frame(self, header, payload):
        self.post({"frame": True}, [header, payload] if payload else [header])

    def receive(self, content, buffers):
        if content["to"] != self.own:
            return
        if "welcome" in content:
            self.kernel = content["from"]
        elif "ping" in content:
            self.post({"pong": True})
        elif "frame" in content:
            self.wire.receive(*buffers)
        elif "got" in content:
            for op in self.orders.receive(content):
                self.cancel(op) if op["op"] == "cancel" else self.queue.append(op)
            self.orders.acknowledge()
        else:
            self.said.append(content)
        self.work()

    def arrive(self, received):
        if received.name in self.cancelled:
            self.cancelled.remove(received.name)
        else:
            self.arrived[received.name] = received.tensor.numpy().copy()

    def cancel(self, op):
        name = op["name"]
        if any(each.get("name") == name for each in self.queue):
            if name not in self.arrived:
                self.cancelled.add(name)
            self.arrived[name] = BufferError(op["why"])
        elif op.get("to") in self.tensors:
            self.tensors[op["to"]] = BufferError(op["why"])

    def work(self):
        while self.queue and self.queue[0].get("name", "") in ("", *self.arrived):
            op = self.queue.pop(0)
            do = {"kernel": self.compile}.get(op["op"], getattr(self, op["op"], None))
            try:
                do(op)
            except BufferError as error:  # of a write, which spoils its tensor
                self.tensors[op["to"]["id"]] = error

    def reply(self, op, **what):
        self.orders.send({"reply": op["reply"], **what})

    # --- operations -----------------------------------------------------------------

    def empty(self, op):
        size = int(np.prod(op["shape"], dtype=int))
        nbytes = size * np.dtype(op["dtype"]).itemsize
        self.tensors[op["id"]] = np.zeros(nbytes, np.uint8)
        self.recorded.append(op["recorded"])

    def take(self, op):
        found = self.arrived.pop(op["name"])
        failed = isinstance(found, BufferError)
        self.tensors[op["id"]] = found if failed else found.reshape(-1).view(np.uint8)

    def write(self, op):
        if "source" in op:
            found = self.view(op["source"]).copy()
        else:
            found = self.arrived.pop(op["name"])
            if isinstance(found, BufferError):
                raise found
            found = found.reshape(-1).view(np.uint8)
        to = self.view(op["to"])
        to[...] = found.reshape(-1).view(to.dtype).reshape(to.shape)

    def free(self, op):
        """Each once; what was withdrawn is not there."""
        for kind, number in op["what"]:
            assert (kind, number) not in self.freed
            self.freed.add((kind, number))
            (self.tensors if kind == "tensor" else self.kernels).pop(number, None)

    def compile(self, op):
        self.kernels[op["id"]] = op

    def run(self, op):
        for call in op["calls"]:
            assert self.kernels[call["kernel"]]["entry"] == "double"
            self.ran.append(call["site"])
            for number in call["writes"]:
                self.tensors[number].view("f4")[...] *= 2

    def give(self, op):
        """Keeps what the elements are now, too: the order of operations."""
        self.gives.append(op["key"])
        if op["what"] is None:
            del self.given[op["key"]]
        else:
            self.given[op["key"]] = op["what"], self.view(op["what"]).copy()

    def read(self, op):
        try:
            views = [self.view(view).copy() for view in op["what"]]
        except BufferError as error:
            self.reply(op, error={"name": "DLPackError", "message": str(error)})
            return
        sent = []
        for name, view in zip(op["names"], views, strict=True):
            flat = view.reshape(-1).view(np.uint8)
            sent.append(self.wire.send(name, flat))

        def done(_):
            if not all(each.ready.done() for each in sent):
                return
            errors = [str(error) for each in sent if (error := each.ready.exception())]
            if errors:
                self.reply(op, error={"name": "DLPackError", "message": errors[0]})
            else:
                self.reply(op, value=None)
            for each in sent:
                each.free()

        for each in sent:
            each.ready.add_done_callback(done)

    def settle(self, op):
        self.reply(op, value=None)

    def canvas(self, op):
        self.view(op["what"])
        self.reply(op, value=None)

    def ready(self, op):
        facts = {"name": "KernelError", "label": "bad", "line": 3, "site": op["kernel"]}
        self.reply(op, error={"message": "no such name", **facts})

    def view(self, fact):
        found = self.tensors[fact["id"]]
        if isinstance(found, BufferError):
            raise found
        if "int4" in fact["dtype"]:  # its bytes
            nbytes = -(-np.prod(fact["shape"], dtype=int) // (1 + (not fact["padded"])))
            return found[fact["offset"] :][:nbytes]
        dtype = np.dtype(fact["dtype"])
        strides = fact["strides"]
        bytes_ = None if strides is None else [s * dtype.itemsize for s in strides]
        return np.ndarray(fact["shape"], dtype, found.data, fact["offset"], bytes_)


def joined(rng=None, **options):
    """A Host, and a page that it has met."""
    from dlpack_web_page._page.host import Host

    channel = Channel()
    host = channel.host = Host(channel.to_pages, **options)
    page = FakePage(channel)
    page.hello()
    channel.deliver()
    channel.rng = rng
    return host, page, channel


DOUBLE = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn double(@builtin(global_invocation_id) id: vec3u) {
  x[id.x] *= 2;
}"""


def finish(channel, coroutine):
    """The result of a coroutine, while messages are delivered."""

    async def both():
        task = asyncio.ensure_future(coroutine)
        while not task.done():
            channel.deliver()
            await asyncio.sleep(0)
        return await task

    return asyncio.run(both())


def read(channel, tensor):
    return finish(channel, tensor.to_host())


def tidied(page, host):
    """Waits until the page knows what Python has released."""
    end = time.monotonic() + 20
    while page.tensors and time.monotonic() < end:
        gc.collect()
        time.sleep(0.01)
        page.channel.deliver()
    return page.tensors


def left_in_page(page):
    """What a page still has, by name."""
    kept = "tensors", "kernels", "given", "arrived", "queue"
    return left(page.orders, page.wire) | {
        name: found for name in kept if (found := getattr(page, name))
    }


def left_here(link):
    found = left(link.orders, link._wire)
    kept = {"given": link.given, "landings": link._landings, "ways": link._ways}
    kept["replies"] = link._replies._open
    return found | {name: each for name, each in kept.items() if each}


def left(orders, wire):
    sending, receiving = wire._sending, wire._receiving
    kept = {"sent": orders._sent, "early": orders._early, "wire": wire.tensors}
    kept |= {"remotes": sending._remotes, "flights": sending._flights}
    kept |= {"queued": sending._queue, "incoming": receiving._ids}
    kept["bytes"] = sending._bytes
    return {name: found for name, found in kept.items() if found}
