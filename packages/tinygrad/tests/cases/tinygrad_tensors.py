"""Tensors to and from tinygrad, and the memory of its buffers."""

import gc
from weakref import ref

import numpy as np
import pytest
from tinygrad import Device, Tensor, Variable, dtypes
from tinygrad.helpers import GlobalCounters
from tinygrad_world import held, installed, moved, upload  # noqa: F401

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt
from dlpack_web._backends import default
from dlpack_web_tinygrad._device import has_compiler, in_use

pytestmark = pytest.mark.usefixtures("installed")


# --- from_dlpack -------------------------------------------------------------------------


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
    assert (
        found.tolist()
        == (values | values if name == "bool" else values + values).tolist()
    )
    back.release()


def test_float16():
    """Where the device has no shader-f16, tinygrad converts."""
    with upload([1, 2.5, -3], "float16") as x:
        t = dlwt.from_dlpack(x)
        assert t.dtype == dtypes.half
        assert (t * 2).tolist() == [2, 5, -6]


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("bfloat16", dtypes.bfloat16),
        ("float8_e4m3fn", dtypes.fp8e4m3),
        ("float8_e5m2", dtypes.fp8e5m2),
    ],
)
def test_dtypes_that_numpy_lacks(name, theirs):
    with dlw.empty(4, name, device=in_use()) as x:
        t = dlwt.from_dlpack(x)
    assert (t.dtype, t.shape) == (theirs, (4,))
    with dlwt.to_dlpack(t) as back:
        assert (back.dtype, back.shape) == (name, (4,))


def test_what_wgsl_lacks_is_named():
    before = held()
    with upload([1.0, 2.0], "float64") as x:
        t = dlwt.from_dlpack(x)
    with dlwt.to_dlpack(t) as back:
        assert back.dtype == "float64"
    with pytest.raises(TypeError, match="WGSL has no double: cast"):
        (t + 1).realize()
    del t
    assert held() == before


def test_what_tinygrad_lacks_is_named():
    with (
        upload([1.0], "complex64") as x,
        pytest.raises(BufferError, match="has no such dtype"),
    ):
        dlwt.from_dlpack(x)


def test_strided_tensors_are_refused():
    with upload([[1, 2], [3, 4]]) as x, x.permute_dims((1, 0)) as y:
        before = held()
        with pytest.raises(
            BufferError, match="is strided: tinygrad's buffers are in row-major"
        ) as found:
            dlwt.from_dlpack(y)
        assert found.tb is not None  # of frames that refer to what they had
        assert held() == before


def test_an_offset_that_cannot_be_bound():
    with upload(range(8)) as x, x[3:] as y:
        t = dlwt.from_dlpack(y)
        assert (t + 1).tolist() == [4, 5, 6, 7, 8]
        t.assign(t + 10).realize()
        assert np.asarray(x).tolist() == [0, 1, 2, 13, 14, 15, 16, 17]


@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_offset_within_a_word(at):
    with (
        upload(range(8), "uint8") as x,
        x[at:] as y,
        pytest.raises(BufferError, match=f"begins at byte {at}"),
    ):
        dlwt.from_dlpack(y)


@pytest.mark.parametrize("name", ["int32", "float32", "uint8"])
def test_the_host_writes_to_and_reads_from_a_tensor_of_ours(name):
    with upload(range(8), name) as x, x[4:] as y:
        buffer = dlwt.from_dlpack(y).uop.buffer
        buffer.copy_from(dlwt.from_dlpack(np.arange(4, dtype=name) + 40).uop.buffer)
        assert np.asarray(x).tolist() == [0, 1, 2, 3, 40, 41, 42, 43]
        assert buffer.numpy().tolist() == [40, 41, 42, 43]


async def test_tensors_of_another_device():
    other = await dlw.webgpu.request_device(label="another")
    refused = pytest.raises(BufferError, match="devices do not share buffers; call")
    with dlw.from_dlpack(np.zeros(3, "f4")).to_device(other) as x, refused:
        dlwt.from_dlpack(x)


def test_a_released_tensor():
    x = upload([1])
    x.release()
    with pytest.raises(dlw.ReleasedError):
        dlwt.from_dlpack(x)


def test_arrays_are_used_where_they_are():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = dlwt.from_dlpack(array)
    assert t.device == "CPU"
    array[0, 0] = 7
    assert (t.to("WEBGPU") + 1).tolist() == [[8, 2, 3], [4, 5, 6]]
    back = dlwt.to_dlpack(t)
    assert (back.shape, back.dtype) == ((2, 3), "float32")
    assert np.shares_memory(np.asarray(back), array)
    before = held()
    back.release()
    del t
    assert held()[0] <= before[0] - 1


def test_arrays_live_as_long_as_tinygrad_uses_them():
    array = np.arange(6, dtype=np.float32)
    seen = ref(array)
    t = dlwt.from_dlpack(array)
    del array
    gc.collect()
    assert seen() is not None
    assert t.tolist() == [0, 1, 2, 3, 4, 5]
    del t
    gc.collect()
    assert seen() is None


def test_constants_and_the_cpu_need_no_compiler():
    assert Tensor(2.0).item() == 2
    assert Tensor.eye(2).tolist() == [[1, 0], [0, 1]]
    on_cpu = Tensor([1.0, 2.0], device="CPU")
    assert (on_cpu + 1).tolist() == [2, 3]
    assert ((Tensor([1.0, 2.0]) + 1).to("CPU") * 2).tolist() == [4, 6]


def test_read_only_arrays_are_refused():
    array = np.arange(3.0)
    array.flags.writeable = False
    before = held()
    with pytest.raises(BufferError, match=r"is read-only, .*copy=True"):
        dlwt.from_dlpack(array)
    assert held() == before


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_no_elements(shape):
    with dlw.empty(shape, device=in_use()) as x:
        t = dlwt.from_dlpack(x)
    assert t.shape == shape
    assert t.numpy().shape == shape
    back = dlwt.to_dlpack(t)
    assert (back.shape, back.dtype, back.device) == (shape, "float32", in_use())
    host = dlwt.from_dlpack(np.zeros(shape, np.int8))
    assert host.device == "CPU"
    back = dlwt.to_dlpack(host)
    assert (back.shape, back.dtype, back.device) == (shape, "int8", "cpu")


def test_one_element():
    with dlw.empty((), device=in_use()) as x:
        assert (dlwt.from_dlpack(x) + 2).item() == 2
    assert np.asarray(dlwt.to_dlpack(Tensor(2.5) + 1)).item() == 3.5
    assert np.asarray(dlwt.to_dlpack(Tensor(2.5))).item() == 2.5


def test_addresses_are_tensors_of_the_cpu():
    """Also where tinygrad's interpreter stands for a compiler."""
    memory = np.arange(6, dtype=np.float32)
    address = memory.ctypes.data
    t = Tensor.from_blob(address, (2, 3), dtype=dtypes.float32, device="CPU")
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]]
    t.assign(t * 2).realize()
    assert memory.tolist() == [0, 2, 4, 6, 8, 10]
    memory[:] = 7
    assert (t + 1).tolist() == [[8] * 3] * 2
    assert t.to("WEBGPU").tolist() == [[7] * 3] * 2
    half = Tensor.from_blob(address + 12, (3,), dtype=dtypes.float32, device="CPU")
    half.assign(Tensor([0.0, 1.0, 2.0], device="CPU")).realize()
    assert memory.tolist() == [7, 7, 7, 0, 1, 2]


def test_the_gpu_has_no_addresses():
    memory = np.zeros(4, np.float32)
    for options in ({}, {"device": "WEBGPU"}):
        with pytest.raises(
            BufferError, match=r"no addresses.*device='CPU'.*from_dlpack"
        ):
            Tensor.from_blob(memory.ctypes.data, (4,), dtype=dtypes.float32, **options)


# --- to_dlpack ---------------------------------------------------------------------------


def test_a_tensor_of_theirs_is_not_copied():
    before = held()
    t = (Tensor([[1.0, 2.0], [3.0, 4.0]]) * 2).realize()
    copies = moved()
    x, y = dlwt.to_dlpack(t), dlw.from_dlpack(t)
    assert moved() == copies
    assert x.shape == y.shape == (2, 2)
    assert x.device == in_use()
    t.assign(t + 1).realize()
    del t
    gc.collect()
    assert np.asarray(x).tolist() == np.asarray(y).tolist() == [[3, 5], [7, 9]]
    x.release(), y.release()
    assert held() == before


def test_memory_of_the_cpu_device_outlives_its_tensor():
    t = (Tensor([1.0, 2.0], device="CPU") * 3).realize()
    buffer = ref(t.uop.buffer)
    x = dlwt.to_dlpack(t)
    del t
    gc.collect()
    if has_compiler():  # else the memory is Python's
        assert buffer() is not None
    assert np.asarray(x).tolist() == [3, 6]
    x.release()
    gc.collect()
    assert buffer() is None


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


def test_tensors_without_one_memory_are_refused():
    symbolic = Tensor.empty(10)[: Variable("n", 1, 10).bind(3)]
    with pytest.raises(BufferError, match=r"symbolic shape, .* t\[:3\]"):
        dlwt.to_dlpack(symbolic)
    several = Tensor([1.0, 2.0], device="CPU").shard(("CPU", "CPU:1"), 0)
    with pytest.raises(BufferError, match="on several devices, CPU, CPU:1: use"):
        dlwt.to_dlpack(several)


def test_dlpack_of_tinygrads_tensors():
    t = Tensor([1.0, 2.0])
    assert t.__dlpack_device__() == tuple(in_use())
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
    found[0] = 7
    assert host.tolist() == [0, 1]


async def test_where_python_cannot_wait(monkeypatch):
    t = (Tensor([1.0]) + 1).realize()
    monkeypatch.setattr(default(), "can_block", lambda: False)
    with pytest.raises(BufferError, match=r"await dlpack_web_tinygrad\.to_host\(t\)"):
        t.numpy()
    Device["WEBGPU"].synchronize()
    assert await dlwt.to_host(t) == [2]


# --- memory ------------------------------------------------------------------------------


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


def test_memory_of_ours_does_not_count_as_tinygrads():
    before = GlobalCounters.mem_used
    with upload(range(6)) as x:
        t = dlwt.from_dlpack(x)
    assert GlobalCounters.mem_used == before
    del t
    assert GlobalCounters.mem_used == before


def test_what_tinygrad_frees_is_released():
    buffer = Tensor([1.0, 2.0]).realize().uop.buffer
    tensor = buffer._buf
    buffer.deallocate()
    assert tensor.released


def test_views_of_buffers():
    buffer = (
        Tensor(np.arange(8, dtype=np.float32), device="WEBGPU").realize().uop.buffer
    )
    assert buffer.view(3, dtypes.float32, 8).ensure_allocated().numpy().tolist() == [
        2,
        3,
        4,
    ]


def test_copies_on_the_device_stay_there():
    t = Tensor([1.0, 2.0], device="WEBGPU").realize()
    buffer = t.uop.buffer
    down = sum(row["down"] for row in dlw.webgpu.stats())
    other = type(buffer)("WEBGPU", 2, dtypes.float32, preallocate=True)
    other.copy_from(buffer)
    assert sum(row["down"] for row in dlw.webgpu.stats()) == down
    assert other.numpy().tolist() == [1, 2]


def test_out_of_memory_is_a_memory_error():
    most = default().limit(in_use().id, "maxBufferSize")
    with pytest.raises(MemoryError, match="failed on WEBGPU"):
        Tensor.empty(most + 4, dtype=dtypes.uint8).uop.buffer.ensure_allocated()
    assert (Tensor([1.0]) + 1).item() == 2
