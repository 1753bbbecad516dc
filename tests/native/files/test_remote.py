"""Files at URLs on the desktop, and what servers do to them besides what is in tests/files/servers.json. The
servers are real ones, of this process."""

import asyncio
import base64
import gzip
import json
import random
import signal
import sys
import threading
import time
import zipfile
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from conftest import run, settle
from tensor_files import archive_of, npy_of, opened, saved

import dlpack_web as dlw

if sys.platform == "emscripten":
    pytest.skip("JavaScript reads URLs", allow_module_level=True)

from url_site import STRONG, Site

from dlpack_web._files import remote

COUNT = 300_000
NUMBERS = np.arange(COUNT, dtype="u4")
HALVES = {"a": NUMBERS[: COUNT // 2], "b": NUMBERS[COUNT // 2 :]}


NPY = npy_of(NUMBERS)
SAFETENSORS = saved(HALVES)
NPZ = archive_of(HALVES)


@pytest.fixture(scope="module")
def _site():
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


@pytest.fixture
def site(_site, monkeypatch):
    monkeypatch.setattr(remote, "_LONGEST", 0.0001)
    live = dlw.live_tensors()
    yield _site
    settle(live)


def whole(url, **options):
    with opened(url, **options) as tensor:
        assert (tensor.dtype, tensor.shape) == ("uint32", (COUNT,))
        assert (tensor.numpy() == NUMBERS).all()


@contextmanager
def fails(message, kind=BufferError):
    with pytest.raises(kind, match=message):
        yield


def test_tensors_are_read_by_their_ranges_alone(site):
    url = site("m.safetensors", SAFETENSORS)
    asked, size = site.asked["m.safetensors"], len(SAFETENSORS)
    start = size - 2 * COUNT
    with opened(url) as file:
        assert asked == ["bytes=0-131071"]
        assert (file["b"].numpy() == HALVES["b"]).all()
        assert asked[1:] == [f"bytes={start}-{size - 1}"]
        file["b"].release()
        with run(file.get_slice("b")[100:200].load()) as part:
            assert part.numpy().tolist() == HALVES["b"][100:200].tolist()
        assert asked[2:] == [f"bytes={start + 400}-{start + 799}"]
        for tensor, name in zip(run(file.load()), file, strict=True):
            assert (tensor.numpy() == HALVES[name]).all()
            tensor.release()
        assert asked[3:] == [f"bytes=4096-{size - 1}"], "contiguous ones share one"


@pytest.mark.parametrize("compressed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_is_read_by_its_directory_and_its_entries(site, compressed):
    noise = np.random.default_rng(0).integers(0, 2**31, (40, 25_000), "i4")
    data = archive_of({"noise": noise, "few": np.float32([1, 2, 3])}, compressed)
    url = site("a.npz", data)
    with opened(url) as file:
        sent = len(site.asked["a.npz"])
        assert (file.info("noise").shape, sent <= 6) == (noise.shape, True)
        assert (file["noise"].numpy() == noise).all()
        assert file["few"].numpy().tolist() == [1, 2, 3]
        part = file.get_slice("noise")[3:5]
        if compressed:
            with fails(r"cannot be read alone, as it is compressed.*whole=True"):
                run(part.load())
        else:
            with run(part.load()) as rows:
                assert (rows.numpy() == noise[3:5]).all()
    assert len(site.asked["a.npz"]) <= 24
    with (
        opened(url, whole=True) as file,
        run(file.get_slice("noise")[3:5].load()) as rows,
    ):
        assert (rows.numpy() == noise[3:5]).all()


@pytest.mark.parametrize(
    "headers", [{}, {"Content-Length": None}], ids=["length", "none"]
)
def test_a_server_without_ranges(site, headers):
    options = {"ranges": False}
    url = site("plain.npy", NPY, STRONG | headers, **options)
    with fails(r"does not support ranges: give whole=True"):
        opened(url, part=np.s_[3:7])
    with opened(url, part=np.s_[3:7], whole=True) as part:
        assert part.numpy().tolist() == [3, 4, 5, 6]


def test_scattered_parts(site):
    matrix = np.arange(2_000_000, dtype="f4").reshape(2000, 1000)
    data = npy_of(matrix)
    url = site("rows.npy", data)
    with opened(url, part=np.s_[::500, :3]) as rows:
        assert (rows.numpy() == matrix[::500, :3]).all()
    assert len(site.asked["rows.npy"]) == 4, "the first row came with the header"
    with fails(r"scattered: for 8000 bytes, \d+ would be read; load contiguous rows"):
        opened(url, part=np.s_[:, 0])
    with opened(url, part=np.s_[:, 0], whole=True) as column:
        assert (column.numpy() == matrix[:, 0]).all()
    weak = site("weak.npy", data, {})
    with fails(r"with one request, as no strong ETag is visible"):
        opened(weak, part=np.s_[::999, :3])
    with opened(weak, part=np.s_[::999, :3], whole=True) as rows:
        assert (rows.numpy() == matrix[::999, :3]).all()
    assert len(site.asked["weak.npy"]) == 3, (
        "one for the header, of two opens, one for the rows"
    )


def test_an_etag_that_comes_late_identifies_nothing(site):
    data = saved({"a": NUMBERS[:99], "w": np.ones((9, 99_999), "f4")})
    url = site("late.safetensors", lambda h: h.give(data, STRONG if h.time > 1 else {}))
    with opened(url) as file, fails("no strong ETag is visible"):
        run(file.get_slice("w")[0].load()).release()
        run(file.get_slice("w")[::4, :9].load())


def test_tries_are_counted_from_the_last_byte_and_wait_longer(site, monkeypatch):
    waits = []
    monkeypatch.setattr(remote, "_LONGEST", 5)
    monkeypatch.setattr(remote.time, "sleep", waits.append)
    whole(site("slow", lambda h: h.give(NPY, cut=80_000 if h.time % 3 == 1 else 0)))
    assert waits == [min(0.1 * 2**i, 5) for i in range(len(site.asked["slow"]) - 1)]
    assert len(waits) == 3 * (len(NPY) // 80_000)


def test_errors_name_no_secret(site):
    for status in (404, 204):
        url = site("no", NPY, status=status)
        with fails(rf"^{site.origin}/no: {status}"):
            opened(url + "?secret")
        assert len(site.asked["no"]) == 1
    with fails(r"^http://127.0.0.1:1/x could not be read, after 5 tries: .*refused"):
        opened("http://127.0.0.1:1/x?secret")
    for url in ("ftp://host/x.npy", "blob:x", "http://", "http://me:secret@host/x"):
        with fails("does not read this URL here") as told:
            opened(url)
        assert "secret" not in str(told)
    empty = {"Content-Range": "bytes */0"}
    url = site("empty", b"", STRONG | empty, status=416)
    with opened(url, dtype="float32") as tensor:
        assert tensor.shape == (0,)


def test_data_urls():
    coded = base64.b64encode(NPY).decode()
    whole(f"data:application/octet-stream;base64,{coded}")


def test_redirects(site):
    def to(where):
        def answer(h):
            h.send_response(302)
            h.send_header("Location", where)
            h.send_header("Content-Length", "0")
            h.end_headers()

        return answer

    site("end.npy", NPY)
    whole(
        site("first", to("second?x")) + "?y" if site("second", to("/end.npy")) else ""
    )
    assert site.asked["end.npy"] == site.asked["first"] == ["bytes=0-"]
    for where in ("round", "file:///etc/passwd", "ftp://localhost/x.npy"):
        with fails(r"/round: 302"):
            opened(site("round", to(where)))


def test_ranges_without_a_length(site, monkeypatch):
    monkeypatch.setattr(remote, "_UNCOUNTED", 100_000)
    hidden = STRONG | {"Content-Length": None}
    whole(
        site(
            "a.npy", lambda h: h.give(NPY, hidden, cut=300_000 if h.time == 1 else None)
        )
    )


def test_what_servers_send_in_place_of_a_file(site):
    page = b"\xef\xbb\xbf\n <!DOCTYPE html><html>Log in</html>".ljust(80)
    pointer = b"version https://git-lfs.github.com/spec/v1\nsize 12\n".ljust(80)
    for name in ("w.npy", "w.safetensors", "w.npz", "w.bin"):
        for data, why in ((page, "web page"), (pointer, "Git LFS")):
            url = site(name, data)
            for options in ({}, {"dtype": "uint8"}):
                with fails(why):
                    opened(url, **options)
            with opened(url, dtype="uint8", format="raw") as tensor:
                assert tensor.tobytes() == data
    typed = STRONG | {"Content-Type": "text/html"}
    with fails("web page"):
        opened(site("typed", NPY[128:], typed), dtype="uint32")
    whole(site("typed.npy", NPY, typed))
    packed = gzip.compress(NPY)
    with fails("compressed .Content-Encoding: gzip"):
        opened(site("gzip", packed, {"Content-Encoding": "gzip"}, ranges=False))


def test_a_sharded_model(site):
    shards = [saved({name: HALVES[name]}) for name in "ab"]
    for name, data in zip("ab", shards, strict=True):
        site(f"{name}.safetensors", data)
    index = {"weight_map": {name: f"{name}.safetensors" for name in "ab"}}
    with opened(site("model.index.json", json.dumps(index).encode())) as model:
        a, b = run(model.load())
        assert (np.concatenate([a.numpy(), b.numpy()]) == NUMBERS).all()
    for tensor in (a, b):
        tensor.release()
    site("b.safetensors", shards[1], status=404)
    with fails("/b.safetensors: 404"):
        opened(f"{site.origin}/model.index.json")


def test_a_shard_is_asked_only_for_its_own_tensors(site):
    few, many = NUMBERS[: COUNT // 3], NUMBERS[: 2 * (COUNT // 3)]
    data = {"a": saved({"x": few, "y": few}), "b": saved({"z": many})}
    for name, each in data.items():
        site(f"{name}.safetensors", each)
    where = {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}
    with opened(
        site("own.index.json", json.dumps({"weight_map": where}).encode())
    ) as model:
        x, z = run(model.load("x", "z"))
        assert (x.numpy() == few).all()
        assert (z.numpy() == many).all()
    end = len(data["a"]) - few.nbytes
    assert site.asked["a.safetensors"][1:] == [f"bytes=4096-{end - 1}"]
    for tensor in (x, z):
        tensor.release()


# --- versions: a file that a server replaces -----------------------------------------------


@contextmanager
def suppress_change():
    try:
        yield
    except BufferError as error:
        if "changed while it was read" not in str(error):
            raise


DATE = "Mon, 01 Jan 2024 00:00:0"
VALIDATORS = {
    "none": lambda version, time: {},
    "a weak ETag": lambda version, time: {"ETag": 'W/"1"'},
    "a date of the same second": lambda version, time: {
        "Last-Modified": f"{DATE}0 GMT",
        "Date": f"{DATE}0 GMT",
    },
    "a strong ETag": lambda version, time: {"ETag": f'"{version}"'},
    "a strong date": lambda version, time: {
        "Last-Modified": f"{DATE}{version} GMT",
        "Date": f"{DATE}9 GMT",
    },
    "a strong ETag at first": lambda version, time: {
        "ETag": '"0"' if time == 1 else 'W/"0"'
    },
    "an ETag at first": lambda version, time: {"ETag": '"0"'} if time == 1 else {},
    "an ETag later": lambda version, time: (
        {} if time == 1 else {"ETag": f'"{version}"'}
    ),
}


@pytest.mark.parametrize("kind", ["breaks", "parts", "no ranges"])
@pytest.mark.parametrize("which", VALIDATORS)
def test_what_is_read_is_one_version_or_an_error(site, kind, which):
    chance, outcomes = random.Random(3), {"first": 0, "second": 0, "error": 0}
    first = npy_of(NUMBERS[:20_000])
    for _ in range(20):
        other = NUMBERS[:20_000] + (1 if chance.random() < 0.5 else 0)
        other[chance.randrange(20_000)] = 7
        versions = [first, npy_of(other.astype("u4"))]
        same, last = chance.random() < 0.3, chance.randrange(4)
        cuts = [chance.randrange(10_000, 40_000) for _ in range(4)]
        most = chance.randrange(5000, 45_000)

        def answer(h, versions=versions, same=same, last=last, cuts=cuts, most=most):
            version = 0 if same or h.time <= last + 1 else 1
            cut = cuts[h.time - 1] if kind != "parts" and h.time <= 4 else None
            some = {"most": most} if kind == "parts" else {}
            headers = VALIDATORS[which](version, h.time)
            ranges = kind != "no ranges"
            h.give(versions[version], headers, ranges=ranges, cut=cut, **some)

        url = site("random.npy", answer)
        found, how = None, nullcontext() if same else suppress_change()
        with how, opened(url) as tensor:
            found = tensor.tobytes()
        if found is None:
            outcomes["error"] += 1
            continue
        contents = [each[128:] for each in versions]
        # Only the ends of parts can be compared.
        if found not in contents:
            assert kind == "parts" or "at first" in which
        else:
            outcomes["first" if found == contents[0] else "second"] += 1
    assert outcomes["first"] > 2, outcomes


# --- tasks -----------------------------------------------------------------------------------


def test_other_tasks_run_and_two_readers_do_not_wait_for_each_other(site):
    both = threading.Barrier(2, timeout=20)

    def answer(h):
        both.wait()
        h.give(NPY)

    async def work():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())
        urls = site("one.npy", answer), site("two.npy", answer)
        told = []
        found = await asyncio.gather(
            *(dlw.open(url, progress=lambda *n: told.append(n)) for url in urls)
        )
        ticking.cancel()
        assert ticks > 1
        assert told[-1] == (4 * COUNT, 4 * COUNT)
        for tensor in found:
            with tensor:
                assert (tensor.numpy() == NUMBERS).all()

    asyncio.run(work())


def test_two_readers_of_one_file(site):
    many = {f"t{i}": NUMBERS + i for i in range(4)}

    async def work(url):
        with await dlw.open(url) as file:
            parts = [file.get_slice(name)[9::2].load() for name in many] + [
                file.load(*many)
            ]
            *parts, all_of = await asyncio.gather(*parts)
            for i, (part, tensor) in enumerate(zip(parts, all_of, strict=True)):
                assert (part.numpy() == NUMBERS[9::2] + i).all()
                assert (tensor.numpy() == NUMBERS + i).all()
                part.release()
                tensor.release()

    asyncio.run(work(site("many.safetensors", saved(many))))
    asyncio.run(work(site("many.npz", archive_of(many))))


@pytest.mark.parametrize("sends", [None, 0, 200_000], ids=["silent", "headers", "some"])
@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_a_server_that_stalls_is_left(site, sends, how):
    reached, ended = threading.Event(), threading.Event()

    def answer(h):
        if sends is not None:
            h.give(NPY, cut=sends)
        reached.set()
        ended.wait(30)

    url = site("stalls.npy", answer)

    async def cancelled():
        task = asyncio.ensure_future(dlw.open(url))
        await asyncio.to_thread(reached.wait)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    try:
        if how == "cancel":
            asyncio.run(cancelled())
        else:

            def interrupt():
                reached.wait()
                time.sleep(0.1)
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                opened(url)
            thread.join()
    finally:
        ended.set()
    assert time.monotonic() - began < 10


def test_a_file_that_is_closed_ends(site):
    file = opened(site("m.safetensors", SAFETENSORS))
    part = file.get_slice("b")[3:]
    file.close()
    with fails("was closed", dlw.ReleasedError):
        run(part.load())
    assert len(site.asked["m.safetensors"]) == 1
