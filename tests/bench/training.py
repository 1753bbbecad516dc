"""What training with tinygrad is measured with: networks, and the kernels of their steps."""

import re
import time

import numpy as np

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

dlwt.install()
from tinygrad import Tensor, TinyJit, nn
from tinygrad.codegen import to_program_cache
from tinygrad.engine.realize import graph_cache
from tinygrad.helpers import Context

from dlpack_web_tinygrad._device import place


class Network:
    """Two linear layers; its step has 33 kernels."""

    shape = (256, 2)

    def __init__(self):
        self.first, self.second = nn.Linear(2, 32), nn.Linear(32, 2)

    def __call__(self, x):
        return self.second(self.first(x).tanh())


class Convolutions:
    """The network of the tutorial that trains in the page."""

    shape = (32, 1, 8, 8)

    def __init__(self):
        self.filters, self.last = nn.Conv2d(1, 16, 3), nn.Linear(16 * 3 * 3, 10)

    def __call__(self, x):
        return self.last(self.filters(x).relu().max_pool2d().flatten(1))


class Training:
    """`step()` trains a network once, on a device."""

    def __init__(self, kind, device="WEBGPU"):
        random = np.random.default_rng(0)
        points = random.normal(size=kind.shape).astype(np.float32)
        flat = points.reshape(len(points), -1)
        classes = (flat[:, 0] * flat[:, 1] > 0).astype(np.int32)
        with Context(DEV=device):
            Tensor.manual_seed(0)
            net = kind()
            optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=0.01)
            x, y = Tensor(points, device=device), Tensor(classes, device=device)

        @TinyJit
        def step():
            optimizer.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y).backward()
            optimizer.step()
            return loss.realize()

        self.jit, self.device = step, device

    def step(self):
        with Context(TRAINING=1, DEV=self.device):
            return self.jit()

    def steps(self, count):
        with Context(TRAINING=1, DEV=self.device):
            for _ in range(count):
                self.jit()

    def loss(self):
        return self.step().item()


def first_step():
    """Seconds until the loss of the first step is known, and how many kernels there were before
    and are now."""
    training, before = Training(Network), len(to_program_cache)
    begin = time.perf_counter()
    loss = training.loss()
    seconds = time.perf_counter() - begin
    assert 0 < loss < 10
    return [seconds, before, len(to_program_cache)]


def on_cpu(kind):
    """Seconds of a step on tinygrad's CPU device, when its kernels are there."""
    training = Training(kind, "CPU")
    training.loss()
    begin = time.perf_counter()
    loss = training.loss()
    seconds = time.perf_counter() - begin
    assert 0 < loss < 10
    return seconds


def kernels(training):
    """The kernels that TinyJit replays: WGSL, its entry, buffers with offset and size, which of
    them are read only, and workgroups. The first buffer is tinygrad's uniform."""
    infinity = dlw.from_dlpack(np.float32([np.inf]), device=place().device)
    for call in training.jit.captured.linear.src:
        assert call.src[0].arg == "graph", "a step that is not one graph"
        graph = graph_cache[call.src[0]]
        for _, program, buffers, fixed in graph.calls:
            facts, wgsl = program.arg, program.src[2].arg
            groups, _ = facts.launch_dims(fixed)
            tensors = [infinity, *(buffers[i]._buf for i in facts.globals)]
            bound = [[t.gpu_buffer, t.byte_offset, t.nbytes] for t in tensors]
            kinds = re.findall(r"@binding\(\d+\)\s*var<([\w,]+)>", wgsl)
            yield [wgsl, facts.function_name, bound, kinds, [*map(int, groups)]]
