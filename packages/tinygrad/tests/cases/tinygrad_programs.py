"""Programs of tinygrad: TinyJit, assign, random numbers, training."""

import contextlib
import io
import json

import numpy as np
import pytest
from tinygrad import Tensor, TinyJit, Variable, nn
from tinygrad.helpers import Context, GlobalCounters
from tinygrad_world import held, installed, moved, upload  # noqa: F401

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt
from dlpack_web._kernels.batch import Batch
from dlpack_web_tinygrad import _device
from dlpack_web_tinygrad._device import in_use

pytestmark = pytest.mark.usefixtures("installed")


# --- programs ----------------------------------------------------------------------------


def test_jit_with_changing_inputs():
    calls = []

    @TinyJit
    def step(a, b):
        calls.append(1)
        return ((a + b) * 2).realize()

    for i in range(6):
        a = Tensor([1.0 * i, 2.0], device="WEBGPU").realize()
        assert step(a, Tensor([3.0, 4.0 * i]).realize()).tolist() == [
            2 * (i + 3),
            2 * (2 + 4 * i),
        ]
    assert len(calls) == 2


def test_jit_of_many_kernels():
    @TinyJit
    def step(a):
        for i in range(6):
            a = (a * 2 + i).contiguous() - a.sum() * 0
        return a.realize()

    for i in range(5):
        wanted = np.array([i, 1.0])
        for j in range(6):
            wanted = wanted * 2 + j
        assert step(Tensor([1.0 * i, 1.0]).realize()).tolist() == wanted.tolist()


def test_the_jit_calls_no_kernel_one_by_one(monkeypatch):
    @TinyJit
    def step(a):
        for i in range(40):
            a = (a + i).contiguous()
        return a.realize()

    inputs = [Tensor([1.0 * i, 1.0]).realize() for i in range(5)]
    for each in inputs[:3]:
        step(each)
    calls, runs = [], []
    run = Batch.run
    monkeypatch.setattr(_device.Shader, "__call__", lambda *_, **__: calls.append(1))
    monkeypatch.setattr(Batch, "run", lambda self: runs.append(len(self)) or run(self))
    assert [step(each).tolist() for each in inputs[3:]] == [[783, 781], [784, 781]]
    assert (calls, runs) == ([], [40, 40])


def test_an_update_that_failed_is_tried_again(monkeypatch):
    @TinyJit
    def step(a):
        return ((a * 2).contiguous().sum() + a).contiguous().realize()

    inputs = [Tensor([1.0 * i, 2.0]).realize() for i in range(3)]
    for each in inputs:
        step(each)
    a, update = Tensor([5.0, 2.0]).realize(), Batch.update

    def interrupted(self, call, *more, **named):
        if call > 0:
            raise KeyboardInterrupt
        update(self, call, *more, **named)

    monkeypatch.setattr(Batch, "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        step(a)
    monkeypatch.undo()
    assert step(inputs[2]).tolist() == [10, 10]  # the one before
    assert step(a).tolist() == [19, 16]


def test_jit_with_variables():
    """Numbers and sizes that change from call to call."""

    @TinyJit
    def step(x, count):
        part = (x[:count] * 2).contiguous()
        return (part.sum() + count).contiguous().realize()

    variable = Variable("count", 1, 300)
    x = Tensor(np.arange(300, dtype=np.float32)).realize()
    for count in (3, 5, 300, 1, 77):
        wanted = 2 * np.arange(count).sum() + count
        assert step(x, variable.bind(count)).item() == wanted


def test_a_captured_function_gives_up_its_tensors():
    before = held()

    @TinyJit
    def step(a):
        return ((a * 2).contiguous().sum() + a).contiguous().realize()

    for i in range(4):
        step(Tensor([1.0 * i, 2.0]).realize())
    assert held()[0] > before[0]
    del step
    assert held() == before


def test_jit_is_timed():
    @TinyJit
    def step(a):
        return ((a * 2).contiguous().sum() + a).contiguous().realize()

    for i in range(2):
        step(Tensor([1.0 * i, 2.0]).realize())
    before = GlobalCounters.time_sum_s
    with Context(DEBUG=2), contextlib.redirect_stdout(io.StringIO()):
        assert step(Tensor([3.0, 2.0]).realize()).tolist() == [13, 12]
    assert GlobalCounters.time_sum_s > before


def test_jit_with_assign():
    total = Tensor.zeros(3).contiguous().realize()

    @TinyJit
    def step(x):
        return total.assign(total + x).realize()

    for _ in range(5):
        step(Tensor([1.0, 2.0, 3.0]).realize())
    assert total.tolist() == [5, 10, 15]


def test_assign_and_slices():
    t = Tensor.zeros(4, 4).contiguous().realize()
    t[1:3, :2] = Tensor([[1.0, 2.0], [3.0, 4.0]])
    t[0] = 7
    t += 1
    wanted = np.ones((4, 4))
    wanted[1:3, :2] += [[1, 2], [3, 4]]
    wanted[0] = 8
    assert t.tolist() == wanted.tolist()


def test_random_numbers():
    Tensor.manual_seed(3)
    one, two = Tensor.rand(500).numpy(), Tensor.randn(5000).numpy()
    Tensor.manual_seed(3)
    assert Tensor.rand(500).numpy().tolist() == one.tolist()
    assert 0 <= one.min() < 0.05
    assert 0.95 < one.max() < 1
    assert abs(two.mean()) < 0.1
    assert abs(two.std() - 1) < 0.1
    whole = Tensor.randint(200, low=-3, high=4).numpy()
    assert set(whole.tolist()) == set(range(-3, 4))


def training():
    """A step of a small network, and its parameters."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(256, 2)).astype(np.float32)
    classes = (points[:, 0] * points[:, 1] > 0).astype(np.int32)
    weights = [
        rng.normal(size=shape).astype(np.float32) * 0.5 for shape in ((32, 2), (2, 32))
    ]
    first, second = nn.Linear(2, 32), nn.Linear(32, 2)
    for layer, values in zip((first, second), weights, strict=True):
        layer.weight.assign(Tensor(values)).realize()
        layer.bias.assign(Tensor(np.zeros(len(values), np.float32))).realize()
    parameters = nn.state.get_parameters([first, second])
    optimizer = nn.optim.Adam(parameters, lr=0.03)
    x, y = Tensor(points, device="WEBGPU"), Tensor(classes, device="WEBGPU")

    @TinyJit
    def step():
        optimizer.zero_grad()
        loss = second(first(x).tanh()).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
        return loss.realize()

    return step


# Of lavapipe; SwiftShader's differ by 1e-7.
LOSSES = [
    0.9090766,
    0.7179152,
    0.7025682,
    0.7586405,
    0.7941251,
    0.7861229,
    0.7433865,
    0.6841300,
    0.6298340,
    0.5985516,
    0.5945739,
    0.6053215,
    0.6133974,
    0.6087295,
    0.5903810,
    0.5632570,
    0.5343273,
    0.5093908,
    0.4910202,
    0.4783944,
    0.4687035,
    0.4589483,
    0.4471617,
    0.4327754,
    0.4163097,
    0.3987876,
    0.3813090,
    0.3649275,
    0.3505544,
    0.3386268,
]


def test_training_gives_the_same_losses_everywhere():
    step = training()
    with Context(TRAINING=1):
        losses = [step().item() for _ in range(30)]
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-4)


def test_a_thousand_steps_leave_nothing_behind():
    total = Tensor.zeros(100).contiguous().realize()

    @TinyJit
    def step(x):
        return total.assign(total * 0.5 + x.sum()).realize()

    def run_some(count):
        for i in range(count):
            step(Tensor([1.0, float(i)]).realize())

    run_some(10)
    before, used = held(), GlobalCounters.mem_used
    bytes_before = sum(row["bytes"] + row["idleBytes"] for row in dlw.webgpu.stats())
    run_some(1000)
    assert held() == before
    assert GlobalCounters.mem_used == used
    bytes_after = sum(row["bytes"] + row["idleBytes"] for row in dlw.webgpu.stats())
    assert bytes_after <= bytes_before + 4096


def test_an_interrupt_in_mid_step(monkeypatch):
    before = held()
    run_kernel, left = _device.Shader.__call__, [1]

    def interrupted(*args, **named):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return run_kernel(*args, **named)

    monkeypatch.setattr(_device.Shader, "__call__", interrupted)
    t = Tensor([1.0, 2.0])
    with pytest.raises(KeyboardInterrupt):
        ((t + 1).contiguous().sum() + t).realize()
    monkeypatch.undo()
    assert (Tensor([1.0, 2.0]) + 1).tolist() == [2, 3]
    del t
    assert held() == before


async def test_weights_from_a_file():
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    header = {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    header["bias"] = {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    data = len(text).to_bytes(8, "little") + text + weight.tobytes()
    data += np.array([5, 7], np.float32).tobytes()
    file = dict(await dlw.open(data, device=in_use()))
    layer = nn.Linear(3, 2)
    Tensor.realize(layer.weight, layer.bias)
    copies = moved()
    nn.state.load_state_dict(
        layer, {name: dlwt.from_dlpack(t) for name, t in file.items()}, verbose=False
    )
    assert moved() == copies
    assert layer(Tensor([[1.0, 1.0, 1.0]])).tolist() == [[8, 19]]
