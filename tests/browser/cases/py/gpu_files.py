"""Files of tensors to a GPU, from Python: in a page and on the desktop."""

import asyncio
import io
import json
import sys
import zipfile
from importlib.util import find_spec

import numpy as np
import pytest
from gpu_world import limit, memory, only_in_a_page

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

MB = 1 << 20
LZMA = find_spec("_lzma") is not None  # Pyodide loads it as a package


def stats():
    """Of the device that the tests use: the first one that is not lost."""
    return next(row for row in dlw.webgpu.stats() if row["lost"] is None)


def written(path, array):
    np.save(path, array)
    return str(path)


SOURCES = {
    "bytes": lambda path: path.read_bytes(),
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "a path": lambda path: path,
    "a str": str,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("size", [0, 1, 5, 3_000_001])
async def test_what_python_has(source, size, tmp_path):
    array = np.arange(size, dtype="u1")
    np.save(tmp_path / "a.npy", array)
    before = stats()["up"]
    with await dlw.open(source(tmp_path / "a.npy"), device="webgpu") as tensor:
        assert (tensor.dtype, tensor.shape) == ("uint8", (size,))
        assert (await tensor.to_host() == array).all()
    assert stats()["up"] - before == size


@pytest.mark.parametrize("size", [0, 3, 3_000_001])
async def test_progress_ends_with_all_bytes(size, tmp_path):
    told = []
    path = written(tmp_path / "a.npy", np.zeros(size, "f4"))
    options = {"device": "webgpu", "progress": lambda *args: told.append(args)}
    (await dlw.open(path, **options)).release()
    loaded = [done for done, total in told if total == 4 * size]
    assert len(loaded) == len(told)
    assert loaded == sorted(loaded)
    assert (loaded[0] > 0 or size == 0, loaded[-1]) == (True, 4 * size)


@pytest.mark.parametrize("compressed", [False, True], ids=["stored", "deflated"])
async def test_archives(compressed, tmp_path):
    first, second = np.arange(3_000_000.0), np.asfortranarray(np.eye(3, 4, dtype="i4"))
    path = tmp_path / "a.npz"
    (np.savez_compressed if compressed else np.savez)(path, first=first, second=second)
    with await dlw.open(path, device="webgpu") as file:
        assert [file.info(name).shape for name in file] == [(3_000_000,), (3, 4)]
        one, two = await file.load()
        assert (await one.to_host() == first).all()
        assert two.strides == (1, 3)
        assert (await two.to_host() == second).all()
        one.release()
        (narrow,) = await file.load("first", dtype="float32")
        assert (await narrow.to_host() == first.astype("f4")).all()
        for tensor in (one, two, narrow):
            tensor.release()


def spoilt():
    """An archive with one array that can be read, and the dtypes of those that cannot."""
    file = io.BytesIO()
    lacking = {"text": np.array(["ab"]), "time": np.zeros((2, 3), "M8[s]")}
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in {"a": np.arange(5, dtype="f4"), **lacking}.items():
            part = io.BytesIO()
            np.save(part, array)
            archive.writestr(f"{name}.npy", part.getvalue())
        archive.writestr("__MACOSX/._a.npy", b"Mac OS X")
        archive.writestr("lzma.npy", b"?" * 99, zipfile.ZIP_LZMA if LZMA else 0)
    refused = {"text": "<U2", "time": "<M8[s]"}
    return file.getvalue(), {
        **refused,
        "__MACOSX/._a": "unreadable",
        "lzma": "unreadable",
    }


async def of_javascript(data):
    import js

    return js.Blob.new([js.Uint8Array.new(data)])


async def of_a_server(data):
    import js

    return js.Response.new(await of_javascript(data))


async def of_bytes(data):
    return data


@pytest.mark.parametrize("where", ["cpu", "webgpu"])
@pytest.mark.parametrize("place", [of_bytes, of_javascript, of_a_server])
async def test_an_array_that_cannot_be_read_is_refused_alone(place, where):
    if place is not of_bytes and sys.platform != "emscripten":
        pytest.skip("needs a page")
    data, refused = spoilt()
    told = []
    options = {"device": where, "progress": lambda *bytes: told.append(bytes)}
    with await dlw.open(await place(data), **options) as file:
        assert list(file) == ["a", *refused]
        assert (len(file), "lzma" in file) == (5, True)
        for name, dtype in refused.items():
            assert file.info(name).dtype == dtype
            assert not isinstance(file.info(name).dtype, dlw.DType)
            with pytest.raises(BufferError, match=f"tensor '{name}' .*file.load"):
                await file.load(name)
        assert file.info("time").shape == (2, 3)
        with pytest.raises(BufferError, match=r"tensor 'text' .*strings"):
            await file.load()
        assert told == []
        (a,) = await file.load("a")
        assert (await a.to_host()).tolist() == [0, 1, 2, 3, 4]
        assert told[-1] == (20, 20)
        a.release()


async def test_a_file_takes_little_memory(tmp_path):
    """Read, converted and written back piece by piece."""
    array = np.arange(24 * MB, dtype="u4")
    source = written(tmp_path / "a.npy", array)
    del array
    with await dlw.open(source, device="webgpu") as warm:
        before = memory()
        with await dlw.open(source, device="webgpu") as tensor:
            await dlw.save(tmp_path / "b.npy", tensor)
        if sys.platform == "emscripten":  # a GPU in software has its buffers there, too
            assert memory() - before <= 32 * MB
        last = warm[-3:]
        assert (await last.to_host()).tolist() == [24 * MB - i for i in (3, 2, 1)]
        last.release()
    array = np.load(tmp_path / "b.npy", mmap_mode=None)
    assert (array == np.arange(24 * MB, dtype="u4")).all()


@pytest.mark.parametrize("size", [16, 24 * MB])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
async def test_wide_elements(source, size, tmp_path):
    """Whose bytes, counted as elements, would reach beyond the heap."""
    array = np.arange(size // 8, dtype="i8")
    written(tmp_path / "a.npy", array)
    with await dlw.open(source(tmp_path / "a.npy"), device="webgpu") as tensor:
        assert (await tensor.to_host() == array).all()


async def test_two_tensors_of_one_path_at_once(tmp_path):
    """Each waits for the GPU between its pieces, while the other reads the same file."""
    arrays = {
        "a": np.arange(6 * MB, dtype="u4"),
        "b": np.arange(6 * MB, dtype="u4") + 7,
    }
    path = tmp_path / "two.safetensors"
    await dlw.save(path, arrays)
    with await dlw.open(path, device="webgpu") as file:
        loads = [file.load(name) for name in ("a", "b", "a")]
        (a,), (b,), (again,) = await asyncio.gather(*loads)
        assert a is again
        for tensor, array in zip((a, b), arrays.values(), strict=True):
            assert (await tensor.to_host() == array).all()
            tensor.release()


async def test_a_mapping_on_the_gpu():
    data = await dlw.save(None, {"a": np.arange(3.0), "b": np.ones((2, 3), "f4")})
    with await dlw.open(data, device="webgpu") as file:
        assert (
            file["a"].device.type == 15
        )  # loaded when asked for, where Python may wait
        assert (await file["a"].to_host()).tolist() == [0, 1, 2]
        again = await dlw.save(None, file)
        file["a"].release()
        file["b"].release()
    assert again == data


async def test_views_are_saved_from_the_gpu():
    array = np.arange(24, dtype="i2").reshape(2, 3, 4)
    with dlw.from_dlpack(array, device="webgpu") as tensor:
        for view in (
            tensor[1],
            tensor[:, ::2],
            tensor.permute_dims((2, 1, 0)),
            tensor[:, 1:, 1:3],
        ):
            data = await dlw.save(None, view)
            expected = await view.to_host()
            with await dlw.open(data) as back:
                assert (back.numpy() == expected).all()
            view.release()


@pytest.mark.parametrize("where", ["elements", "progress"])
async def test_what_fails_leaves_nothing(where, tmp_path):
    array = np.zeros(5 * MB, np.int64)
    array[-1] = 2**31
    source = written(tmp_path / "a.npy", array)
    before = stats()["buffers"]

    def stop(loaded, total):
        assert total == array.nbytes
        if where == "progress" and loaded > total // 2:
            raise ZeroDivisionError

    wanted = "int32" if where == "elements" else None
    with pytest.raises((BufferError, ZeroDivisionError)):
        await dlw.open(source, device="webgpu", dtype=wanted, progress=stop)
    assert stats()["buffers"] == before


# --- limits -----------------------------------------------------------------------------------

SUM = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = x[0] + x[arrayLength(&x) - 1]; }
"""


async def test_more_than_one_buffer_holds(device, tmp_path):
    most = int(limit(device.gpu, "maxBufferSize"))
    needed = -(-(most + 4) // 16) * 16
    message = rf"{needed} bytes are needed.*no device of that has more: use several"
    with pytest.raises(BufferError, match=message):
        dlw.empty(most + 4, "uint8", device=device)
    if most > 256 * MB:  # more than the default
        small = await dlw.webgpu.request_device(maxBufferSize=256 * MB)
        ask = rf"{256 * MB + 16} bytes.*request_device\(maxBufferSize={256 * MB + 16}\)"
        with pytest.raises(BufferError, match=ask):
            dlw.empty(256 * MB + 1, "uint8", device=small)
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(most + 4)  # no disk is taken, nor is anything of it read
    if sys.platform != "emscripten":  # whose files are in memory
        with pytest.raises(BufferError, match=message):
            await dlw.open(path, device=device, dtype="uint8")


async def test_more_than_a_kernel_sees():
    """A tensor may be larger than what can be bound; its parts are bound then."""
    device = await dlw.webgpu.request_device(maxStorageBufferBindingSize=128 * MB)
    count = 32 * MB + 4
    kernel = dlw.webgpu.Kernel(SUM)
    with (
        dlw.empty(count, "uint32", device=device) as large,
        dlw.empty(1, "uint32", device=device) as y,
    ):
        assert int(limit(device.gpu, "maxStorageBufferBindingSize")) == 128 * MB
        with pytest.raises(
            BufferError,
            match=rf"{4 * count} bytes, of which {128 * MB} can be bound.*"
            r"request_device\(maxStorageBufferBindingSize=",
        ):
            kernel(large, y)
        with large[count - 1 :] as last, large[64:128] as part:
            last.write(np.array([7], "u4"))
            part.write(np.full(64, 4, "u4"))
            kernel(part, y)
            assert (await y.to_host()).tolist() == [8]


# --- what JavaScript has --------------------------------------------------------------------


def made(name, **options):
    query = "&".join(f"{key}={value}" for key, value in options.items())
    return f"/made/{name}?{query}"


in_page = only_in_a_page("URLs")


@in_page
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
async def test_a_url(where):
    told = []
    options = {"device": where, "progress": lambda *args: told.append(args)}
    for ranges in (0, 1):
        url = made("a.npy", count=700_001, ranges=ranges)
        with await dlw.open(url, **options) as tensor:
            assert tensor.shape == (700_001,)
            assert (await tensor.to_host() == np.arange(700_001)).all()
        assert told[-1] == (2_800_004, 2_800_004)
    whole = f"{__import__('js').location.origin}{url}"
    with await dlw.open(whole, device=where, dtype=None) as tensor:
        assert tensor.size == 700_001


@in_page
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
async def test_objects_of_javascript(where):
    import js

    response = await js.fetch(made("a.npy", count=1000))
    copy = response.clone()
    blob = await response.blob()
    buffer = await blob.arrayBuffer()
    for source in (copy, blob, buffer, js.Uint8Array.new(buffer), blob.stream()):
        with await dlw.open(source, device=where) as tensor:
            assert (await tensor.to_host() == np.arange(1000)).all()
    with pytest.raises(TypeError, match="takes a URL"):
        await dlw.open(js.Object.new())


@in_page
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
async def test_parts_of_what_is_behind_a_url(where):
    url = made("m.safetensors", count=700_001, tensors=3)
    with await dlw.open(url, device=where) as file:
        two = file.get_slice("2")
        assert (two.shape, two.dtype, two.nbytes) == ((700_001,), "uint32", 2_800_004)
        asked = await asked_for(url)
        keys = [
            np.s_[5:9],
            np.s_[6:8, None],
            np.s_[-1],
            np.s_[..., 20:2:-3],
            np.s_[3:3],
        ]
        found = await asyncio.gather(*[two[key].load() for key in keys])
        assert await asked_for(url) <= asked + 3
        whole = np.arange(1_400_002, 2_100_003)
        for key, tensor in zip(keys, found, strict=True):
            with tensor:
                assert (tensor.device.is_host, tensor.shape) == (
                    where == "cpu",
                    whole[key].shape,
                )
                assert (await tensor.to_host() == whole[key]).all()
        # Pyodide makes BigInts of some of these.
        for key in np.s_[700_000 : 2**53 - 1], np.s_[:: 10**30], np.s_[-(2**60) : 2]:
            with await two[key].load() as tensor:
                assert (await tensor.to_host() == whole[key]).all()
        with pytest.raises(IndexError, match="index 700001 is out of bounds"):
            two[700_001]
        assert [
            rows.shape async for rows in released(file.parts("2", nbytes=1 << 21))
        ] == [
            (524_288,),
            (175_713,),
        ]
    url = made("a.npy", count=700_001)
    with await dlw.open(url, device=where, part=np.s_[..., 9:5:-1, None]) as tensor:
        assert (await tensor.to_host()).tolist() == [[9], [8], [7], [6]]
    for key in 700_001, (0, 0), (..., np.int64(0), 0):
        with pytest.raises(
            IndexError, match=r"index 700001 is out of bounds|[23] ranges"
        ):
            await dlw.open(url, part=key)
    without = made("a.npy", count=700_001, ranges=0)
    with pytest.raises(BufferError, match=r"does not support ranges.*`whole`"):
        await dlw.open(without, part=np.s_[5:7])
    with await dlw.open(without, device=where, part=np.s_[5:7], whole=True) as tensor:
        assert (await tensor.to_host()).tolist() == [5, 6]


async def released(tensors):
    async for tensor in tensors:
        with tensor:
            yield tensor


async def asked_for(url):
    import js

    return int(
        await (await js.fetch(f"/made/.asked?of={js.encodeURIComponent(url)}")).text()
    )


@pytest.mark.parametrize("order", "CF")
async def test_parts_of_what_python_has(order, tmp_path):
    array = np.asarray(
        np.arange(3_000_000, dtype="f4").reshape(3000, 1000), order=order
    )
    path = written(tmp_path / "a.npy", array)
    before = stats()["up"]
    count = 0
    for key in (
        np.s_[7:9],
        np.s_[:, 2],
        np.s_[::-700, 5:7],
        np.s_[2999, ::3],
        np.s_[0:0],
        np.s_[1:, ::-2, None],
    ):
        for source in (path, npz_of(array)):
            if source is path:
                tensor = await dlw.open(source, device="webgpu", part=key)
            else:
                with await dlw.open(source, device="webgpu") as file:
                    tensor = await file.get_slice("a")[key].load()
            with tensor:
                assert (await tensor.to_host() == array[key]).all()
            count += array[key].nbytes
    assert stats()["up"] - before == count


@pytest.mark.parametrize("order", "CF")
async def test_scattered_bytes(order, tmp_path):
    """Which come in no whole words."""
    whole = np.resize(np.arange(251, dtype="u1"), (5003, 2001))
    array = np.asarray(whole, order=order)
    path = written(tmp_path / "a.npy", array)
    for key in np.s_[:, ::2], np.s_[::-3, 1::5], np.s_[7:, 0], np.s_[-5001:, ::2000]:
        with await dlw.open(path, device="webgpu", part=key) as tensor:
            assert (await tensor.to_host() == array[key]).all()


@pytest.mark.parametrize("dtype", ["uint8x65535", "complex128x65535", "float32x65535"])
async def test_vectors_of_many_lanes(dtype):
    data = np.resize(np.arange(251, dtype="u1"), 9 * dlw.DType(dtype).itemsize)
    for key, count in ((np.s_[:], 9), (np.s_[1::4], 2), (np.s_[-1:], 1)):
        rows = data.reshape(9, -1)[key]
        with await dlw.open(data, device="webgpu", dtype=dtype, part=key) as tensor:
            assert (tensor.dtype, tensor.shape) == (dtype, (count,))
            assert (await tensor.to_host()).tobytes() == rows.tobytes()
    with await dlw.open(data, device="webgpu", dtype=dtype) as tensor:
        assert tensor.shape == (9,)


def npz_of(array):
    file = io.BytesIO()
    np.savez(file, a=array)
    return file.getvalue()


@in_page
async def test_a_mapping_from_a_url():
    url = made("m.safetensors", count=1001, tensors=5)
    with await dlw.open(url, device="webgpu") as file:
        assert [file.info(name) for name in file] == [("uint32", (1001,), 4004)] * 5
        four, two = await file.load("4", "2")
        assert (await four.to_host())[0] == 4004
        assert file["2"] is two
        assert (await file["3"].to_host())[0] == 3003
        with pytest.raises(KeyError, match="has no tensor '5'"):
            await file.load("5")
        for name in "234":
            file[name].release()
    with pytest.raises(dlw.ReleasedError, match="was closed"):
        await file.load("1")


@in_page
async def test_what_the_server_says():
    with pytest.raises(BufferError, match="404"):
        await dlw.open("/made-up.npy")
    with pytest.raises(BufferError, match=r"/index.html: it begins like a web page"):
        await dlw.open("/index.html")
    with pytest.raises(BufferError, match=r"/index.html: it begins like a web page"):
        await dlw.open("/index.html", dtype="uint8")


async def of_the_origin(data, name):
    """A file of the origin with such bytes: its handle, and how to write it again."""
    import js

    folder = await js.navigator.storage.getDirectory()
    handle = await folder.getFileHandle(name, create=True)

    async def write(content):
        writable = await handle.createWritable()
        await writable.write(js.Uint8Array.new(content))
        await writable.close()

    await write(data)
    return handle, write, lambda: folder.removeEntry(name)


def model_of(count):
    """The tensors of each file of a model, and its index."""
    names = [f"m-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    tensors = [{f"{i}.w": np.full((i + 1, 3), i, "f4")} for i in range(count)]
    index = {f"{i}.w": name for i, name in enumerate(names)}
    return dict(zip(names, tensors, strict=True)), json.dumps(
        {"weight_map": index}
    ).encode()


@pytest.mark.parametrize("where", ["cpu", "webgpu"])
async def test_a_sharded_model_in_a_folder(where, tmp_path):
    shards, index = model_of(8)
    for name, tensors in shards.items():
        await dlw.save(tmp_path / name, tensors)
    (tmp_path / "m.index.json").write_bytes(index)
    await is_that_model(await dlw.open(tmp_path, device=where), [])


async def is_that_model(file, told):
    with file:
        assert sorted(file) == [f"{i}.w" for i in range(8)]
        found = await file.load()
        for name, tensor in zip(file, found, strict=True):
            i = int(name[0])
            assert (await tensor.to_host() == np.full((i + 1, 3), i)).all()
            tensor.release()
        assert told[-1:] in ([], [(12 * 36, 12 * 36)])
        with await file.get_slice("7.w")[3, ::2].load() as part:
            assert (await part.to_host()).tolist() == [7, 7]


@in_page
async def test_a_sharded_model_in_a_folder_of_the_origin():
    import js

    if not hasattr(js.navigator.storage, "getDirectory"):
        pytest.skip("no file system of the origin here")
    root = await js.navigator.storage.getDirectory()
    folder = await root.getDirectoryHandle("a model", create=True)
    shards, index = model_of(8)
    data = {name: await dlw.save(None, tensors) for name, tensors in shards.items()}
    files = []
    for name, content in {**data, "m.index.json": index}.items():
        handle = await folder.getFileHandle(name, create=True)
        writable = await handle.createWritable()
        await writable.write(js.Uint8Array.new(content))
        await writable.close()
        files.append(await handle.getFile())
    told = []
    try:
        for source in (folder, js.Array.of(*files)):
            told.clear()
            options = {"device": "webgpu", "progress": lambda *args: told.append(args)}
            await is_that_model(await dlw.open(source, **options), told)
        await folder.removeEntry("m-00003-of-00008.safetensors")
        with pytest.raises(
            BufferError, match=r"m-00003-of-00008\.safetensors cannot be opened"
        ):
            await dlw.open(folder)
    finally:
        await root.removeEntry("a model", recursive=True)


@in_page
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
@pytest.mark.parametrize("change", ["other elements", "shorter", "gone"])
async def test_a_file_of_the_origin_that_changed(change, where):
    import js

    if not hasattr(js.navigator.storage, "getDirectory"):
        pytest.skip("no file system of the origin here")
    before, buffers = dlw.live_tensors(), stats()["buffers"]
    data = await dlw.save(None, {"a": np.zeros(700_000, "f4")})
    name = f"changed {change} {where}"
    handle, write, remove = await of_the_origin(data, name)
    with await dlw.open(handle, device=where) as file:
        if change == "gone":
            await remove()
        else:
            await write(data[:1000] if change == "shorter" else data[::-1])
        with pytest.raises(BufferError, match=f"{name} cannot be read .*it changed"):
            await file.load("a")
    if change == "gone":
        with pytest.raises(BufferError, match=f"{name} cannot be opened"):
            await dlw.open(handle, device=where)
    else:
        await remove()
    assert (dlw.live_tensors(), stats()["buffers"]) == (before, buffers)


@in_page
async def test_a_server_that_cannot_be_reached():
    """Of another origin, where the page's policy, CORS or the network may be why."""
    import js

    other = js.location.origin.replace("127.0.0.1", "localhost")
    with pytest.raises(BufferError) as told:
        await dlw.open(f"{other}/made/a.npy?secret")
    message = str(told.value)
    assert message.startswith(f"{other}/made/a.npy")
    assert "secret" not in message
    if "after 5 tries" in message:
        assert f"Access-Control-Allow-Origin: {js.location.origin}" in message
    else:
        assert "Content-Security-Policy" in message
        assert "connect-src" in message


@in_page
async def test_python_is_told_its_own_errors():
    def stop(loaded, total):
        raise ZeroDivisionError("mine")

    before = stats()["buffers"]
    for where in ("cpu", "webgpu"):
        with pytest.raises(ZeroDivisionError, match="mine"):
            await dlw.open(made("a.npy", count=700_001), device=where, progress=stop)
    assert stats()["buffers"] == before


@in_page
@pytest.mark.parametrize("where", ["cpu", "webgpu"])
async def test_a_task_that_is_cancelled(where):
    before, buffers = dlw.live_tensors(), stats()["buffers"]
    begun = asyncio.Event()

    def told(loaded, total):
        begun.set()

    url = made("a.npy", count=40_000_000)
    task = asyncio.ensure_future(dlw.open(url, device=where, progress=told))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for _ in range(6000):
        if (dlw.live_tensors(), stats()["buffers"]) == (before, buffers):
            break
        await asyncio.sleep(0.01)
    assert (dlw.live_tensors(), stats()["buffers"]) == (before, buffers)


@in_page
async def test_saved_to_javascript():
    import js

    stream = js.TransformStream.new()
    reading = js.Response.new(stream.readable).arrayBuffer()
    tensors = {"a": dlw.from_dlpack(np.arange(3.0), device="webgpu"), "b": np.ones(2)}
    await dlw.save(stream.writable, tensors, metadata={"by": "me"})
    with await dlw.open(await reading) as file:
        assert file.metadata == {"by": "me"}
        assert file["a"].numpy().tolist() == [0, 1, 2]
        file["a"].release()
    tensors["a"].release()
