"""A small network learns to read digits, with tinygrad on the GPU of the page."""

import time

import numpy as np
from tinygrad import Tensor, TinyJit, nn
from tinygrad.helpers import Context

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

BATCH = 32
STEPS = 160


class Network:
    """Pictures [n, 1, 8, 8] to logits [n, 10]."""

    def __init__(self):
        self.filters = nn.Conv2d(1, 16, 3)
        self.last = nn.Linear(16 * 3 * 3, 10)

    def __call__(self, x):
        return self.last(self.filters(x).relu().max_pool2d().flatten(1))


async def start(url):
    """Makes a GPU device tinygrad's; returns the digits of the file, 0 to 1."""
    device = await dlw.webgpu.request_device()
    dlwt.install(device)
    file = {name: t.numpy().copy() for name, t in (await dlw.open(url)).items()}
    for name in ("pixels", "test_pixels"):
        file[name] = np.float32(file[name][:, None] / 16)
    return file


class Training:
    """A new network. It reads pictures from one of our tensors, labels from another."""

    def __init__(self, digits):
        self.digits = digits
        self.pixels = dlw.empty((BATCH, 1, 8, 8), "float32", device="webgpu")
        self.labels = dlw.empty((BATCH,), "int32", device="webgpu")
        self.x, self.y = map(dlwt.from_dlpack, (self.pixels, self.labels))  # no copy
        Tensor.manual_seed(0)
        self.network = Network()
        parameters = nn.state.get_parameters(self.network)
        self.optimizer = nn.optim.Adam(parameters, lr=0.01)
        self.step = TinyJit(self._step)
        self.predict = TinyJit(lambda: self.network(self.x).softmax().realize())

    def _step(self):
        self.optimizer.zero_grad()
        loss = self.network(self.x).sparse_categorical_crossentropy(self.y)
        loss.backward()
        self.optimizer.step()
        return loss.realize()

    async def run(self, report):
        """Trains for STEPS steps, or until `report(loss, seconds, STEPS)` is false."""
        rng = np.random.default_rng(0)
        for _ in range(STEPS):
            begin = time.perf_counter()
            rows = rng.choice(len(self.digits["labels"]), BATCH, replace=False)
            self.pixels.write(self.digits["pixels"][rows])
            self.labels.write(self.digits["labels"][rows].astype(np.int32))
            with Context(TRAINING=1):
                loss = self.step()
            loss = float(await dlwt.to_host(loss))
            if not report(loss, time.perf_counter() - begin, STEPS):
                break

    async def read(self, pictures):
        """The ten scores of each picture; those of one picture sum to 1."""
        scores = np.empty((len(pictures), 10), np.float32)
        for i in range(0, len(pictures), BATCH):
            some = pictures[i : i + BATCH]
            self.pixels[: len(some)].write(some)
            scores[i : i + BATCH] = (await dlwt.to_host(self.predict()))[: len(some)]
        return scores

    async def test(self):
        """The scores of the digits that it has not seen, and how many are right."""
        scores = await self.read(self.digits["test_pixels"])
        return scores, float((scores.argmax(1) == self.digits["test_labels"]).mean())

    async def save(self):
        """The weights as a safetensors file."""
        return await dlw.save(None, nn.state.get_state_dict(self.network))
