"""Uploads from Python: converted, in pieces, over what is there, out of a pool."""

import random

import numpy as np
import pytest
from gpu_world import limit, memory, set_bytes

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

MB = 1 << 20
CASTS = [
    ("float64", "float32"),
    ("complex128", "complex64"),
    ("float32", "float16"),
    ("float16", "float32"),
    ("int64", "int32"),
    ("uint64", "uint32"),
]
VIEWS = {
    "contiguous": lambda a: a,
    "odd": lambda a: a.reshape(-1)[:1001],
    "strided": lambda a: a[::2, ::3],
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-1],
}


def stats():
    """Of the device that the tests use: the first one that is not lost."""
    return next(row for row in dlw.webgpu.stats() if row["lost"] is None)


def lent(device, buffer, shape, dtype, offset=0):
    """A tensor over somebody else's GPUBuffer."""
    return dlw.from_gpu_buffer(buffer, shape, dtype, device=device, byte_offset=offset)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize(("source", "target"), CASTS)
async def test_elements_are_converted_as_numpy_does(source, target, view):
    first = 0 if source == "uint64" else -99
    array = view((np.arange(60 * 61).reshape(60, 61) + first).astype(source))
    with dlw.from_dlpack(array) as host:
        with host.to_device("webgpu", dtype=target) as on_gpu:
            assert (on_gpu.dtype, on_gpu.shape) == (target, array.shape)
            result = await on_gpu.to_host()
        assert host.dtype == source
    np.testing.assert_array_equal(result, array.astype(target))


@pytest.mark.parametrize("order", ["transposed", "strided"])
@pytest.mark.parametrize("source", ["float32", "float64", "uint8"])
async def test_large_uploads_take_little_memory(source, order):
    """More than one piece of 4 MiB, and no temporary of the whole size."""
    array = (np.arange(6000 * 4000) % 65521).astype(source).reshape(6000, 4000)
    view = array.T if order == "transposed" else array[:, ::2]
    target = "float32" if source == "float64" else source
    with dlw.from_dlpack(view[:8]) as small:
        small.to_device("webgpu", dtype=target).release()
    before = memory()
    with dlw.from_dlpack(view) as host:
        on_gpu = host.to_device("webgpu", dtype=target)
    assert memory() - before <= 5 * MB
    with on_gpu:
        result = await on_gpu.to_host()
    assert (result == view).all()


WIDTHS = [
    (name, name) for name in ("uint8", "uint16", "float32", "int64", "complex128")
]


@pytest.mark.parametrize("order", ["rows", "columns"])
@pytest.mark.parametrize(("source", "target"), CASTS + WIDTHS)
async def test_pieces_of_odd_rows_are_all_elements(source, target, order):
    """Rows that are longer than a piece, some of which end within a word."""
    size = 8 * MB // np.dtype(source).itemsize + 1
    whole = (np.arange(2 * (size + 3)) % 2039 + 1).astype(source).reshape(2, size + 3)
    array = whole[:, :size] if order == "rows" else whole[:, :size].T
    with dlw.from_dlpack(array, device="webgpu", dtype=target) as new:
        assert (await new.to_host() == array.astype(target)).all()
        again = array[::-1]
        new.write(again, convert=True)
        assert (await new.to_host() == again.astype(target)).all()


@pytest.mark.parametrize("strided", [False, True], ids=["whole", "strided"])
@pytest.mark.parametrize("position", [0, 5, 3_000_000])
@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ("int64", "int32", 2**31),
        ("int64", "int32", -(2**31) - 1),
        ("int64", "int32", 2**63 - 1),
        ("uint64", "uint32", 2**32),
        ("uint64", "uint32", 2**64 - 1),
    ],
)
async def test_integers_that_do_not_fit_change_nothing(
    source, target, wrong, position, strided
):
    """Also those in a later piece, where the first is written already."""
    wide = np.zeros((position + 3, 2), source)
    wide[position, 0] = wrong
    array = wide[:, 0] if strided else wide[:, 0].copy()
    message = rf"element {position} of the {source} tensor.* is {wrong}, which {target}"
    with dlw.from_dlpack(np.ones(position + 3, target), device="webgpu") as there:
        with pytest.raises(BufferError, match=message):
            dlw.from_dlpack(array).to_device("webgpu", dtype=target)
        with pytest.raises(BufferError, match=message):
            there.write(array, convert=True)
        assert (await there.to_host() == 1).all()
        limit = np.iinfo(target).max
        wide[position, 0] = limit
        if not strided:
            array[position] = limit
        there.write(array, convert=True)
        assert (await there.to_host())[position] == limit


def test_conversions_that_are_not_offered():
    with dlw.from_dlpack(np.zeros(3, np.float32)) as host:
        with pytest.raises(BufferError, match="cannot convert float32 to int32"):
            host.to_device("webgpu", dtype="int32")
        with (
            host.to_device("webgpu") as on_gpu,
            pytest.raises(BufferError, match="only uploads convert"),
        ):
            on_gpu.to_device("webgpu", dtype="float16")


async def test_writing_over_a_tensor_needs_no_new_buffer():
    with dlw.empty((2, 3), device="webgpu") as target:
        created = stats()["created"]
        for source in (
            np.arange(6, dtype=np.float32).reshape(2, 3),
            np.arange(6, dtype=np.float32).reshape(3, 2).T,
            dlw.from_dlpack(np.full((2, 3), 7, np.float32)),
        ):
            target.write(source)
            expected = np.asarray(source)
            np.testing.assert_array_equal(await target.to_host(), expected)
        wide = np.arange(6.0).reshape(2, 3)
        with pytest.raises(BufferError, match="cannot be written over"):
            target.write(wide)
        target.write(wide, convert=True)
        np.testing.assert_array_equal(await target.to_host(), wide)
        with dlw.from_dlpack(wide.astype("f4") + 1, device="webgpu") as other:
            created += 1
            target.write(other)
        np.testing.assert_array_equal(await target.to_host(), wide + 1)
        for wrong in (np.zeros((3, 2), "f4"), np.zeros((2, 3), "i4")):
            with pytest.raises(BufferError, match="cannot be written over"):
                target.write(wrong)
        # Readbacks make their own, once.
        assert stats()["created"] <= created + 2


def test_buffers_are_used_again():
    array = np.arange(1000, dtype=np.float32)
    with dlw.from_dlpack(array) as host:
        host.to_device("webgpu").release()
        before = stats()
        for _ in range(100):
            host.to_device("webgpu").release()
        after = stats()
    assert after["created"] == before["created"]
    assert after["reused"] == before["reused"] + 100
    assert after["up"] - before["up"] == 100 * array.nbytes
    assert (after["bytes"], after["buffers"]) == (before["bytes"], before["buffers"])


async def test_ten_thousand_cycles_leave_nothing():
    """Uploads and readbacks: GPU and wasm memory stay as they are."""
    array = np.arange(16, dtype=np.float32)
    with dlw.from_dlpack(array) as host, dlw.from_dlpack(np.empty(16, "f4")) as out:
        live, used, kept = dlw.live_tensors(), 0, {}
        for turn in range(10_000):
            with host.to_device("webgpu") as on_gpu:
                if turn % 10 == 0:
                    await on_gpu.to_host(out=out.numpy())
            if turn == 1_000:
                used, kept = memory(), stats()
        assert dlw.live_tensors() == live
        assert memory() == used
        for key in ("buffers", "bytes", "idleBytes", "created"):
            assert stats()[key] == kept[key], key
        assert (out.numpy() == array).all()


@pytest.mark.parametrize("share", [0.25, 0.99], ids=["a quarter", "nearly all"])
async def test_the_largest_tensors(share, device):
    """256 MB in software, and nearly all that the device allows in one buffer, if it has that
    much: with Dawn on NVIDIA the limit is 1 TiB."""
    most = min(limit(device.gpu, "maxBufferSize"), 2**32)
    count = int(most * share) // 16 * 4
    ends = np.array([1, 2], np.uint32)
    with dlw.empty(count, "uint32", device="webgpu") as tensor:
        buffer = tensor.gpu_buffer
        for offset in (0, 4 * count - 8):
            with lent(tensor.device, buffer, [2], "uint32", offset) as part:
                part.write(ends)
                assert (await part.to_host() == ends).all()


# --- packed and padded elements of one dtype ------------------------------------------------

SMALL = {"int1": 1, "uint2": 2, "int4": 4, "float4_e2m1fn": 4, "float6_e3m2fn": 6}


def small(name, padded, values):
    """A CPU tensor of these numbers."""
    if padded:
        array = np.array(values, "u1")
        return dlw.from_dlpack(array.view(np.dtype("V1", metadata={"dlpack": name})))
    tensor, bits = dlw.empty(len(values), name), SMALL[name]
    packed = sum(value << bits * i for i, value in enumerate(values))
    set_bytes(tensor, packed.to_bytes(tensor.nbytes, "little"))
    return tensor


async def numbers_of(tensor):
    return list((await tensor.to_host()).tobytes())


@pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
@pytest.mark.parametrize("name", SMALL)
async def test_packed_and_padded_elements_are_converted_by_a_write(name, padded):
    """Into parts that have their words to themselves; all others keep their elements."""
    bits, rng = SMALL[name], random.Random(name)
    word = 4 if padded else 96 // bits if bits == 6 else 32 // bits
    for size in (0, 1, 5, word, 3 * word, 3 * word + 3):
        values = [rng.randrange(1 << bits) for _ in range(size)]
        with (
            small(name, padded, values) as host,
            host.to_device("webgpu") as whole,
        ):
            assert whole.padded == padded
            for first, count in (
                (0, size),
                (word * min(1, size // word), size),
                (word, word),
            ):
                if first + count > size and count != size:
                    continue
                part = whole[first : first + count]
                given = [rng.randrange(1 << bits) for _ in range(len(part))]
                with small(name, not padded, given) as source, part:
                    with pytest.raises(BufferError, match="packed in one and padded"):
                        part.write(source)
                    assert await numbers_of(whole) == values
                    part.write(source, convert=True)
                values[first : first + len(given)] = given
                assert await numbers_of(whole) == values


async def test_strided_padded_elements_are_packed():
    with (
        small("int4", True, range(12)) as flat,
        flat.reshape((3, 4)).permute_dims((1, 0)) as turned,
        dlw.empty((4, 3), "int4", device="webgpu") as target,
    ):
        target.write(turned, convert=True)
        assert await numbers_of(target) == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


@pytest.mark.parametrize("padded", [False, True], ids=["packed", "padded"])
async def test_packed_and_padded_tensors_on_a_gpu_are_not_mixed(padded):
    """One element is a byte in either, and its other bits are a neighbour's, or not."""
    for size in (1, 2, 8):
        values = [1 + i for i in range(size)]
        with (
            small("int4", padded, values) as host,
            host.to_device("webgpu") as target,
            small("int4", not padded, [15] * size).to_device("webgpu") as source,
            small("int4", not padded, [7] * size) as on_host,
        ):
            with pytest.raises(BufferError, match=r"packed in one.*in the other$"):
                target.write(source)
            with pytest.raises(BufferError, match="only uploads convert"):
                target.write(source, convert=True)
            for convert in False, True:
                with pytest.raises(
                    BufferError, match=r"packed in one|on a GPU|on webgpu"
                ):
                    on_host.write(target, convert=convert)
            with (
                target.reshape((1, size)) as row,
                pytest.raises(BufferError, match="shape and dtype must be the same"),
            ):
                row.write(on_host, convert=True)
            assert await numbers_of(target) == values
            assert await numbers_of(on_host) == [7] * size
            assert np.asarray(target).tobytes() == bytes(values)


async def test_a_part_that_shares_a_word_is_not_converted():
    """The neighbours of a padded part, which begins within a word, stay."""
    with (
        small("int4", True, range(9)) as host,
        host.to_device("webgpu") as whole,
        small("int4", False, [15, 15, 15]) as source,
    ):
        for first in range(1, 6):
            with (
                whole[first : first + 3] as part,
                pytest.raises(BufferError, match="shares words of 4 bytes"),
            ):
                part.write(source, convert=True)
        assert await numbers_of(whole) == [*range(9)]
