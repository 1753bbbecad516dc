"""dlpack_web.tinygrad: tensors both ways, what is refused, devices that are lost, memory."""

import gc
import io
import json
import re
from importlib import metadata, util
from types import SimpleNamespace

import numpy as np
import pytest
from gpu_world import destroy, has_feature, live
from tinygrad import Device, Tensor, TinyJit, dtypes, nn
from tinygrad.helpers import Context, GlobalCounters
from tinygrad_world import installed  # noqa: F401

import dlpack_web as dlw
from dlpack_web import tinygrad as dlwt
from dlpack_web._backends import backend
from dlpack_web.tinygrad import _device, _exchange

pytestmark = pytest.mark.usefixtures("installed")


def upload(values, dtype="float32"):
    return dlw.from_dlpack(np.asarray(values, dtype)).to_device(_device.in_use())


def moved():
    return sum(row["copies"] for row in dlw.webgpu.stats())


def held():
    """What is alive, without what only exceptions and cycles keep."""
    gc.collect()
    return live()


# --- install ------------------------------------------------------------------------------


def test_install_again_changes_nothing(installed):
    opened = Device["WEBGPU"]
    assert dlwt.install() == installed == _device.in_use()
    assert Device["WEBGPU"] is opened
    assert Device.DEFAULT == "WEBGPU"
    assert dlwt.install(installed) == installed


def test_install_refuses_the_cpu():
    with pytest.raises(BufferError, match="needs no install"):
        dlwt.install("cpu")


@pytest.mark.parametrize("version", ["0.13.0", "0.15.0", "1.0", "0.9.2"])
def test_other_versions_are_refused(version, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: version)
    with pytest.raises(ImportError, match=rf"{version} is installed; supported is tinygrad>=0.14"):
        dlwt.install()


def test_without_tinygrad_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("dlpack_web.tinygrad._setup.find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install 'tinygrad"):
        dlwt.install()
    assert util.find_spec("tinygrad") is not None


def test_tinygrads_own_device_is_not_replaced_once_it_is_open(monkeypatch):
    monkeypatch.setattr(_device, "WebGpuDevice", type("Another", (), {}))
    with pytest.raises(BufferError, match="has opened its own WEBGPU"):
        dlwt.install()


def test_there_is_one_device():
    with pytest.raises(BufferError, match="one device, WEBGPU"):
        Tensor([1.0], device="WEBGPU:1").realize()


async def test_a_lost_device():
    t = (Tensor([1.0, 2.0]) + 1).realize()
    await destroy(_device.in_use())
    for _ in range(3):  # a browser reports it a little later
        await dlw.to_host()
    with pytest.raises((dlw.DeviceLostError, BufferError)):
        await dlwt.to_host(t)
    new = dlwt.install(await dlw.webgpu.request_device())
    assert new == _device.in_use()
    again = Tensor([1.0, 2.0]) + 1
    assert (await dlwt.to_host(again)).tolist() == [2, 3]
    assert (await dlwt.to_host(Tensor.rand(3))).shape == (3,)
    with pytest.raises(BufferError, match=r"lost|devices do not share"):
        await dlwt.to_host(t + 1)


# --- from_dlpack --------------------------------------------------------------------------


def test_a_tensor_of_ours_is_not_copied():
    before = held()
    x = upload(range(6))
    copies = moved()
    t = dlwt.from_dlpack(x)
    assert (t.device, t.shape, t.dtype) == ("WEBGPU", (6,), dtypes.float32)
    assert moved() == copies
    t.assign(t * 10).realize()
    assert moved() == copies
    assert np.asarray(x).tolist() == [0, 10, 20, 30, 40, 50]
    x.release()
    assert (t + 1).tolist() == [1, 11, 21, 31, 41, 51]
    del t
    assert held() == before


NAMES = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")
NAMES += ("int64", "uint64")


@pytest.mark.parametrize("name", NAMES)
def test_dtypes_both_ways(name):
    values = np.array([0, 1, 1, 0, 1, 0, 1]).astype(name)
    with upload(values, name) as x:
        t = dlwt.from_dlpack(x)
        back = dlwt.to_dlpack(t)
        assert back.dtype == name
        assert np.asarray(back).tolist() == values.tolist()
        found = (t | t if name == "bool" else t + t).numpy()
    assert found.dtype == name
    assert found.tolist() == (values | values if name == "bool" else values + values).tolist()
    back.release()


def test_float16(installed):
    if not has_feature(installed.gpu, "shader-f16"):
        pytest.skip("the device has no shader-f16")
    with upload([1, 2.5, -3], "float16") as x:
        t = dlwt.from_dlpack(x)
        assert t.dtype == dtypes.half
        assert (t * 2).tolist() == [2, 5, -6]


def test_what_wgsl_lacks_is_named():
    with upload([1.0, 2.0], "float64") as x:
        t = dlwt.from_dlpack(x)
    assert dlwt.to_dlpack(t).dtype == "float64"
    with pytest.raises(TypeError, match="WGSL has no double: cast"):
        (t + 1).realize()


def test_what_tinygrad_lacks_is_named():
    with upload([1.0], "complex64") as x, pytest.raises(BufferError, match="has no such dtype"):
        dlwt.from_dlpack(x)


def test_strided_tensors_are_refused():
    with upload([[1, 2], [3, 4]]) as x, x.permute_dims((1, 0)) as y:
        before = held()
        with pytest.raises(BufferError, match="is strided: tinygrad's buffers are in row-major"):
            dlwt.from_dlpack(y)
        assert held() == before


def test_an_offset_that_cannot_be_bound():
    with upload(range(8)) as x, x[3:] as y:
        t = dlwt.from_dlpack(y)
        assert (t + 1).tolist() == [4, 5, 6, 7, 8]
        t.assign(t + 10).realize()
        assert np.asarray(x).tolist() == [0, 1, 2, 13, 14, 15, 16, 17]


def test_an_offset_within_a_word():
    with upload(range(8), "uint8") as x, x[3:] as y, pytest.raises(BufferError, match="begins at byte 3"):
        dlwt.from_dlpack(y)


async def test_tensors_of_another_device():
    other = await dlw.webgpu.request_device(label="another")
    with dlw.from_dlpack(np.zeros(3, "f4")).to_device(other) as x:
        with pytest.raises(BufferError, match="devices do not share buffers; call"):
            dlwt.from_dlpack(x)


def test_a_released_tensor():
    x = upload([1])
    x.release()
    with pytest.raises(dlw.ReleasedError):
        dlwt.from_dlpack(x)


def test_arrays_are_used_where_they_are():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = dlwt.from_dlpack(array)
    assert t.device == _exchange._HOST
    array[0, 0] = 7
    assert (t.to("WEBGPU") + 1).tolist() == [[8, 2, 3], [4, 5, 6]]
    back = dlwt.to_dlpack(t)
    assert np.shares_memory(np.asarray(back), array)
    before = held()
    back.release()
    del t
    assert held()[0] <= before[0] - 1


def test_read_only_arrays_are_refused():
    array = np.arange(3.0)
    array.flags.writeable = False
    before = held()
    with pytest.raises(BufferError, match=r"is read-only, .*copy=True"):
        dlwt.from_dlpack(array)
    assert held() == before


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_no_elements(shape):
    with dlw.empty(shape, device=_device.in_use()) as x:
        t = dlwt.from_dlpack(x)
    assert t.shape == shape
    assert t.numpy().shape == shape
    assert dlwt.to_dlpack(t).shape == shape


def test_one_element():
    with dlw.empty((), device=_device.in_use()) as x:
        assert (dlwt.from_dlpack(x) + 2).item() == 2
    assert np.asarray(dlwt.to_dlpack(Tensor(2.5) + 1)).item() == 3.5
    assert np.asarray(dlwt.to_dlpack(Tensor(2.5))).item() == 2.5


# --- to_dlpack ----------------------------------------------------------------------------


def test_a_tensor_of_theirs_is_not_copied():
    before = held()
    t = (Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2).realize()
    copies = moved()
    x, y = dlwt.to_dlpack(t), dlw.from_dlpack(t)
    assert moved() == copies
    assert x.shape == y.shape == (2, 2)
    assert x.device == _device.in_use()
    t.assign(t + 1).realize()
    del t
    gc.collect()
    assert np.asarray(x).tolist() == np.asarray(y).tolist() == [[3, 5], [7, 9]]
    x.release(), y.release()
    assert held() == before


def test_a_kernel_of_ours_between_two_of_theirs():
    double = dlw.webgpu.Kernel("""
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&x)) { x[id.x] *= 2; }
}""")
    t = (Tensor([1.0, 2.0, 3.0]) + 1).realize()
    with dlwt.to_dlpack(t) as x:
        double(x)
    assert (t + 1).tolist() == [5, 7, 9]


def test_views_are_made_contiguous():
    t = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).realize()
    with dlwt.to_dlpack(t.T) as x, dlwt.to_dlpack(t[1]) as y:
        assert np.asarray(x).tolist() == [[1, 4], [2, 5], [3, 6]]
        assert np.asarray(y).tolist() == [4, 5, 6]


def test_other_things_are_refused():
    with pytest.raises(TypeError, match=r"takes a tinygrad\.Tensor, not \[1\]"):
        dlwt.to_dlpack([1])


def test_dlpack_of_tinygrads_tensors():
    t = Tensor([1.0, 2.0])
    assert t.__dlpack_device__() == tuple(_device.in_use())
    host = dlwt.from_dlpack(np.arange(3, dtype=np.float32))
    assert host.__dlpack_device__() == (1, 0)
    assert np.from_dlpack(host).tolist() == [0, 1, 2]


async def test_to_host():
    array = await dlwt.to_host(Tensor([1, 2]) + 1)
    assert (array.tolist(), array.dtype) == ([2, 3], np.int32)
    array[0] = 7
    host = dlwt.from_dlpack(np.arange(2.0))
    found = await dlwt.to_host(host)
    assert found.tolist() == [0, 1]


async def test_where_python_cannot_wait(monkeypatch):
    t = (Tensor([1.0]) + 1).realize()
    monkeypatch.setattr(backend(), "can_block", lambda: False)
    with pytest.raises(BufferError, match=r"await dlpack_web\.tinygrad\.to_host\(t\)"):
        t.numpy()
    Device["WEBGPU"].synchronize()
    assert await dlwt.to_host(t) == [2]


# --- memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [*range(1, 10), 255, 257, 4099])
def test_sizes_that_are_no_words(size):
    values = (np.arange(size) % 251).astype(np.uint8)
    t = Tensor(values).to("WEBGPU").realize()
    assert t.numpy().tolist() == values.tolist()
    assert (t + 1).numpy().tolist() == (values + 1).tolist()


def test_fresh_memory_is_zeros():
    for _ in range(2):
        t = (Tensor.ones(1000).contiguous() * 7).realize()
        del t
    assert not Tensor.empty(1000).realize().numpy().any()


def test_views_of_buffers():
    buffer = Tensor(np.arange(8, dtype=np.float32), device="WEBGPU").realize().uop.buffer
    assert buffer.view(3, dtypes.float32, 8).ensure_allocated().numpy().tolist() == [2, 3, 4]


def test_copies_on_the_device_stay_there():
    t = Tensor([1.0, 2.0], device="WEBGPU").realize()
    buffer = t.uop.buffer
    down = sum(row["down"] for row in dlw.webgpu.stats())
    other = type(buffer)("WEBGPU", 2, dtypes.float32, preallocate=True)
    other.copy_from(buffer)
    assert sum(row["down"] for row in dlw.webgpu.stats()) == down
    assert other.numpy().tolist() == [1, 2]


def test_out_of_memory_is_a_memory_error(installed):
    most = backend().limit(installed.id, "maxBufferSize")
    with pytest.raises(MemoryError, match="failed on WEBGPU"):
        Tensor.empty(most + 4, dtype=dtypes.uint8).uop.buffer.ensure_allocated()
    assert (Tensor([1.0]) + 1).item() == 2


# --- kernels ------------------------------------------------------------------------------


def _shader(source, name="broken"):
    return _device.Shader(Device["WEBGPU"], SimpleNamespace(name=name, lib=source.encode()))


async def test_a_shader_that_does_not_compile():
    with upload([1, 2]) as x, upload([3]) as y:
        _shader("fn broken( {")(x)
        with pytest.raises(dlw.KernelError, match="broken"):
            await x.to_host()
        assert (await y.to_host()).tolist() == [3]


def test_kernels_declare_what_they_only_read():
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([True, False]).realize()
    sources = []
    with pytest.MonkeyPatch.context() as patch:
        kernel = _device.Kernel
        patch.setattr(_device, "Kernel", lambda wgsl, *more, **named: sources.append(wgsl) or kernel(wgsl, *more, **named))
        found = (b.where(a, a * 3) + 0.125).tolist()
    assert found == [1.125, 6.125]
    found = re.findall(r"var<storage,(\w+)>", sources[-1])
    assert sorted(found) == ["read", "read", "read_write"]
    assert "atomic" not in sources[-1]


def test_read_only_tensors_may_be_read(installed):
    with upload([1, 2]) as x:
        capsule_of = SimpleNamespace(
            __dlpack__=lambda **options: x.__dlpack__(**options),
            __dlpack_device__=x.__dlpack_device__,
        )
        t = dlwt.from_dlpack(capsule_of)
        assert (t + 1).tolist() == [2, 3]


def test_the_same_source_is_compiled_once():
    source = """@group(0) @binding(0) var<uniform> INFINITY: f32;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn same() { x[0] += INFINITY; }"""
    one, other = _shader(source, "same"), _shader(source, "same")
    assert one.kernel is other.kernel
    with upload([1]) as x:
        one(x)
        assert np.asarray(x).tolist() == [np.inf]


def test_limits_are_named(monkeypatch):
    place = _device._place()
    one = (Tensor([1.0]) + 5).contiguous()
    monkeypatch.setitem(place._most, "maxStorageBuffersPerShaderStage", 0)
    with pytest.raises(BufferError, match=r"tinygrad's kernel '\w+' has 2 buffers, webgpu:\d+ allows 0 \(maxStorageBuffers"):
        one.realize()
    monkeypatch.undo()
    assert (Tensor([1.0]) + 5).item() == 6


def test_a_device_has_the_limits_that_shaders_need(installed):
    renderer = Device["WEBGPU"].renderer
    assert renderer.local_max[0] == backend().limit(installed.id, "maxComputeWorkgroupSizeX")
    assert renderer.shared_max == backend().limit(installed.id, "maxComputeWorkgroupStorageSize")


@pytest.mark.parametrize("timestamps", [True, False])
def test_kernels_are_timed(timestamps, monkeypatch):
    if not timestamps:
        monkeypatch.setattr(backend(), "has_feature", lambda device, name: False)
    place = _device._place()
    seen = []
    with upload([1]) as x:
        shader = _shader("""@group(0) @binding(0) var<uniform> INFINITY: f32;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn timed() { x[0] = min(INFINITY, 4.0); }""", "timed")
        seen.append(shader(x, wait=True))
        assert np.asarray(x).tolist() == [4]
    assert 0 <= seen[0] < 60
    monkeypatch.setattr(backend(), "can_block", lambda: False)
    with upload([1]) as x:
        assert place.time(shader.kernel, (place.infinity, x), (1, 1, 1)) is None


# --- programs -----------------------------------------------------------------------------


def test_jit_with_changing_inputs():
    calls = []

    @TinyJit
    def step(a, b):
        calls.append(1)
        return ((a + b) * 2).realize()

    for i in range(6):
        a = Tensor([1.0 * i, 2.0], device="WEBGPU").realize()
        assert step(a, Tensor([3.0, 4.0 * i]).realize()).tolist() == [2 * (i + 3), 2 * (2 + 4 * i)]
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
    assert 0 <= one.min() < 0.05 and 0.95 < one.max() < 1
    assert abs(two.mean()) < 0.1 and abs(two.std() - 1) < 0.1
    whole = Tensor.randint(200, low=-3, high=4).numpy()
    assert set(whole.tolist()) == set(range(-3, 4))


def training():
    """A step of a small network, and its parameters."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(256, 2)).astype(np.float32)
    classes = (points[:, 0] * points[:, 1] > 0).astype(np.int32)
    weights = [rng.normal(size=shape).astype(np.float32) * 0.5 for shape in ((32, 2), (2, 32))]
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


LOSSES: list[float] = []


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
    file = await dlw.open(io.BytesIO(data).getvalue(), device=_device.in_use())
    layer = nn.Linear(3, 2)
    copies = moved()
    nn.state.load_state_dict(
        layer, {name: dlwt.from_dlpack(t) for name, t in file.items()}, verbose=False
    )
    assert moved() == copies
    assert layer(Tensor([[1.0, 1.0, 1.0]])).tolist() == [[8, 19]]


