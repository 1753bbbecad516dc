"""Kernels that are kept for the next visit: what comes back is what tinygrad made, or nothing."""

import pickle
import zlib
from hashlib import sha256
from types import SimpleNamespace

import pytest
from tinygrad_world import Tensor, installed  # noqa: F401

from dlpack_web_tinygrad import _cache, _device
from dlpack_web_tinygrad._cache import Cache, pack, programs, schedules, unpack
from dlpack_web_tinygrad._device import WGSLRenderer

pytestmark = pytest.mark.usefixtures("installed")


class Store:
    """A browser that keeps data."""

    def __init__(self):
        self.folders = {}

    def can_block(self):
        return True

    def block_on(self, coroutine):
        with pytest.raises(StopIteration) as done:
            coroutine.send(None)
        return done.value.value

    async def cached(self, folder):
        return dict(self.folders.get(folder, {}))

    async def cache(self, folder, name, data):
        self.folders.setdefault(folder, {})[name] = data


@pytest.fixture
def store(monkeypatch):
    """No kernels in memory, and a browser that keeps some."""
    before = dict(programs), dict(schedules)
    kept_here = Store()
    monkeypatch.setattr(_cache, "default", lambda: kept_here)
    texts = dict.fromkeys(("tinygrad", "dlpack-web", "dlpack-web-tinygrad"), "files")
    monkeypatch.setattr(
        _cache.metadata,
        "distribution",
        lambda name: SimpleNamespace(read_text=lambda file: texts[name]),
    )
    kept_here.texts = texts
    forget()
    yield kept_here
    forget()
    for cache, old in zip((programs, schedules), before, strict=True):
        cache.update(old)


def forget():
    programs.clear()
    schedules.clear()


def visit(monkeypatch, facts="one device"):
    """What a page has after install(), if it remembers nothing itself."""
    forget()
    kept = Cache(WGSLRenderer, facts)
    kept.load()
    monkeypatch.setattr(_device, "_cache", kept)
    return kept


def rendered(monkeypatch, values):
    """How many kernels a computation generates; it has to be right."""
    count = []
    render = WGSLRenderer.render_kernel
    with monkeypatch.context() as patch:
        patch.setattr(
            WGSLRenderer,
            "render_kernel",
            lambda self, *args, **named: (
                count.append(1) or render(self, *args, **named)
            ),
        )
        found = ((Tensor(values) * 3.25).sum() + 0.5).item()
    assert found == sum(values) * 3.25 + 0.5
    return len(count)


async def save(kept):
    kept.save()
    await kept._task


async def test_a_second_visit_generates_nothing(store, monkeypatch):
    first = visit(monkeypatch)
    assert rendered(monkeypatch, [1.0, 2.0, 3.0]) > 0
    made, planned = dict(programs), dict(schedules)
    await save(first)
    visit(monkeypatch)
    assert planned == dict(schedules)
    assert {key: uop for key, uop in made.items() if key[1] is WGSLRenderer} == programs
    assert rendered(monkeypatch, [1.0, 2.0, 3.0]) == 0
    assert rendered(monkeypatch, [4.0, 5.0, 6.0]) == 0


async def test_only_what_is_new_is_kept(store, monkeypatch):
    first = visit(monkeypatch)
    rendered(monkeypatch, [1.0, 2.0])
    await save(first)
    rendered(monkeypatch, [1.0, 2.0, 3.0, 4.0, 5.0])
    count = len(programs)
    await save(first)
    (one, other) = [unpack(data)[0] for data in store.folders[first._folder].values()]
    assert not one.keys() & other.keys()
    assert len(one) + len(other) == count
    visit(monkeypatch)
    assert len(programs) == count


@pytest.mark.parametrize("at", [0, 40, -1])
async def test_damaged_data_is_ignored(store, monkeypatch, at):
    first = visit(monkeypatch)
    rendered(monkeypatch, [1.0, 2.0])
    await save(first)
    ((name, data),) = store.folders[first._folder].items()
    damaged = bytearray(data)
    damaged[at] ^= 1
    store.folders[first._folder][name] = bytes(damaged)
    visit(monkeypatch)
    assert not programs
    assert not schedules
    assert rendered(monkeypatch, [1.0, 2.0]) > 0


@pytest.mark.parametrize("what", ["device", "tinygrad", "dlpack-web", "setting"])
async def test_what_was_made_for_something_else_is_ignored(store, monkeypatch, what):
    first = visit(monkeypatch)
    rendered(monkeypatch, [1.0, 2.0])
    await save(first)
    kept = store.folders.pop(first._folder)
    if what == "setting":
        monkeypatch.setattr(_cache.ContextVar._cache["SPLIT_REDUCEOP"], "value", 0)
    elif what != "device":
        store.texts[what] = "files of another version"
    other = visit(monkeypatch, what)
    assert other._folder != first._folder
    store.folders[other._folder] = kept  # even if it was in its place
    visit(monkeypatch, what)
    assert not programs


async def test_foreign_pickles_run_nothing(store, monkeypatch):
    first = visit(monkeypatch)

    class Foreign:
        def __reduce__(self):
            return pytest.fail, ("it ran",)

    for thing in (Foreign(), _cache.ContextVar.tolist):
        data = zlib.compress(pickle.dumps(([], {}, {b"key": thing})))
        await store.cache(first._folder, first._name(data), data)
        with pytest.raises(pickle.UnpicklingError, match="not a class of tinygrad"):
            unpack(data)
    visit(monkeypatch)
    assert not schedules


def test_the_name_is_of_the_folder_and_the_data(store, monkeypatch):
    kept = visit(monkeypatch)
    assert kept._name(b"x") == sha256(kept._folder.encode() + b"x").hexdigest()


async def test_memory_of_tensors_is_not_kept():
    t = Tensor([1.5, 2.5]).realize()
    (back,) = unpack(pack({}, {b"key": t.uop}))[1].values()
    assert back is t.uop
    data = zlib.decompress(pack({"a key": t.uop + 1}, {}))
    assert b"tinygrad.device" not in data


async def test_what_cannot_be_pickled_is_not_kept(store, monkeypatch):
    kept = visit(monkeypatch)
    odd = Tensor([1.0]).uop.rtag(lambda: None)
    schedules[b"odd"] = odd
    kept.save()
    assert kept._task is None
    del schedules[b"odd"]
    rendered(monkeypatch, [1.0, 2.0])
    await save(kept)
    assert len(store.folders[kept._folder]) == 1


def test_without_known_versions_nothing_is_kept(store, monkeypatch):
    def missing(name):
        raise _cache.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(_cache.metadata, "distribution", missing)
    kept = visit(monkeypatch)
    rendered(monkeypatch, [1.0, 2.0])
    kept.soon()
    assert kept._timer is None


async def test_where_python_cannot_wait_it_comes_later(store, monkeypatch):
    first = visit(monkeypatch)
    rendered(monkeypatch, [1.0, 2.0])
    await save(first)
    monkeypatch.setattr(store, "can_block", lambda: False)
    later = visit(monkeypatch)
    assert not programs
    await later._task
    assert programs


def test_kernels_of_other_limits_are_dropped(monkeypatch):
    (Tensor([1.0, 2.0]) + 7.5).realize()
    before = [key for key in programs if key[1] is WGSLRenderer]
    assert before
    here = _device.place()
    monkeypatch.setattr(type(here), "sizes", lambda self: ((64, 64, 64), 65535, 16384))
    _device.use(here.device)
    assert not [key for key in programs if key[1] is WGSLRenderer]
    monkeypatch.undo()
    _device.use(here.device)
    assert (Tensor([1.0, 2.0]) + 7.5).tolist() == [8.5, 9.5]
