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

    def __init__(self):
        self.first, self.second = nn.Linear(2, 32), nn.Linear(32, 2)

    def __call__(self, x):
        return self.second(self.first(x).tanh())


class Training:
    """`steps(n)` trains a network n times."""

    def __init__(self):
        points = np.random.default_rng(0).normal(size=(256, 2)).astype(np.float32)
        classes = (points[:, 0] * points[:, 1] > 0).astype(np.int32)
        with Context(DEV="WEBGPU"):
            Tensor.manual_seed(0)
            net = Network()
            optimizer = nn.optim.Adam(nn.state.get_parameters(net), lr=0.01)
            x, y = Tensor(points, device="WEBGPU"), Tensor(classes, device="WEBGPU")

        @TinyJit
        def step():
            optimizer.zero_grad()
            loss = net(x).sparse_categorical_crossentropy(y).backward()
            optimizer.step()
            return loss.realize()

        self.jit = step

    def steps(self, count):
        with Context(TRAINING=1, DEV="WEBGPU"):
            for _ in range(count):
                self.jit()

    def loss(self):
        with Context(TRAINING=1, DEV="WEBGPU"):
            return self.jit().item()


def first_step():
    """Seconds until the loss of the first step is known, and how many kernels there were before
    and are now."""
    training, before = Training(), len(to_program_cache)
    begin = time.perf_counter()
    loss = training.loss()
    seconds = time.perf_counter() - begin
    assert 0 < loss < 10
    return [seconds, before, len(to_program_cache)]


KINDS = {
    "uniform": "uniform",
    "storage,read": "read-only-storage",
    "storage,read_write": "storage",
}


def kernels(training):
    """The kernels that TinyJit replays, as gpu.mjs takes them. The first buffer is tinygrad's uniform."""
    infinity = dlw.from_dlpack(np.float32([np.inf]), device=place().device)
    found = []
    for call in training.jit.captured.linear.src:
        assert call.src[0].arg == "graph", "a step that is not one graph"
        for _, program, buffers, fixed in graph_cache[call.src[0]].calls:
            facts, wgsl = program.arg, program.src[2].arg
            tensors = [infinity, *(buffers[i]._buf for i in facts.globals)]
            bound = [
                {
                    "buffer": t.gpu_buffer,
                    "offset": t.byte_offset,
                    "size": -(-t.nbytes // 4) * 4,
                }
                for t in tensors
            ]
            kinds = re.findall(r"@binding\(\d+\)\s*var<([\w,]+)>", wgsl)
            groups, _ = facts.launch_dims(fixed)
            kernel = {"code": wgsl, "entryPoint": facts.function_name, "bound": bound}
            kernel["types"] = [KINDS[kind] for kind in kinds]
            found.append(kernel | {"groups": [*map(int, groups)]})
    return found
