# More than 500 lines: one suite, whose tests share their fixtures.
"""The functions that JavaScript calls, called through ctypes as JavaScript would."""

import ctypes
import sys
from ctypes import c_int32, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np
import pytest
from bridge import borrow, function, lend, release, scratch, struct_of
from forge import Forged

import dlpack_web as dlw
from dlpack_web import _core

FLOAT32 = 2 | 32 << 8 | 1 << 16
WRITABLE_WANTED = (
    "the array is read-only and writable memory was asked for; copy it first, for "
    "example with x.copy()"
)
KINDS = {"other": 1, "unsupported": 2, "released": 3, "copy": 4, "memory": 6}


empty = function("empty", c_size_t, c_int32, c_uint32, c_uint32)
wrap = function(
    "wrap", c_size_t, c_uint32, c_int32, c_int32, c_uint32, c_uint32, c_uint32
)
share = function("share", c_size_t, c_uint32)
pack = function("pack", c_size_t, c_uint32)
view = function("view", c_size_t, c_uint32, c_int32, ctypes.c_double)
error_kind = function("error_kind", c_int32)
error_text = function("error_text", ctypes.c_char_p)
on_drop = function("on_drop", None, c_void_p)
on_run = function("on_run", None, c_void_p)
DROP = ctypes.CFUNCTYPE(None, c_uint32)
call = function("call", c_size_t)
chunk = function("chunk", c_int32, c_uint32, c_uint32, ctypes.c_double)
RUN = ctypes.CFUNCTYPE(c_int32, c_int32, c_int32)
NUMBER, TENSOR = 0, 1


def set_shape(*shape, strides=(), byte_offset=0):
    room = (c_int64 * 129).from_address(scratch())
    room[: len(shape)] = shape
    room[64 : 64 + len(strides)] = strides
    room[128] = byte_offset


def described():
    """The call that JavaScript reads: site, workgroups and count; (kind, value) of each argument."""
    doubles = list((ctypes.c_double * (5 + 2 * 32)).from_address(call()))
    pairs = doubles[5 : 5 + 2 * int(doubles[4])]
    return doubles[:5], list(zip(pairs[::2], pairs[1::2], strict=True))


def key_of_call():
    """The numbers of its key."""
    doubles = (ctypes.c_double * 40).from_address(call() + 8 * (5 + 2 * 32))
    return tuple(doubles[: int(doubles[0])])


def failure():
    """(kind, text) of the stored exception, which is raised and so forgotten."""
    kind, text = error_kind(), error_text().decode()
    with pytest.raises(Exception):  # noqa: B017, PT011 - of any kind
        _core._raise()
    assert error_kind() == 0
    assert _core._raise() is None
    return kind, text


def test_borrow_reads_and_release_frees():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    struct, handle = struct_of(borrow(array, 0))
    assert struct.dl_tensor.data == array.ctypes.data
    assert struct.dl_tensor.shape[:2] == [2, 3]
    assert dlw.live_tensors() == 1
    assert release(handle) == 0
    assert dlw.live_tensors() == 0


def test_handle_is_refused_once_released():
    _, handle = struct_of(borrow(np.zeros(2), 0))
    assert release(handle) == 0
    assert release(handle) == -1
    for call in (share, pack, lambda stale: chunk(stale, FLOAT32, 0)):
        assert call(handle) == 0
        assert failure()[0] == KINDS["released"]
    with pytest.raises(dlw.ReleasedError, match="stale"):
        _core._take(handle)


def test_rule_121_slots_are_used_again_as_late_as_possible():
    """And with another handle: 256 others at least come in between."""
    array = np.zeros(2)
    handles, slots = [lend(array)], set()
    while handles[-1] & 0xFFFFF not in slots:
        slots.add(handles[-1] & 0xFFFFF)
        release(handles[-1])
        handles.append(lend(array))
    release(handles[-1])
    assert len(handles) > 256
    assert handles[-1] not in handles[:-1]
    assert release(handles[0]) == -1


def test_rule_121_a_stale_handle_does_not_reach_who_has_its_slot_now():
    array = np.arange(3.0)
    stale = handle = lend(np.zeros(2))
    release(stale)
    while handle == stale or handle & 0xFFFFF != stale & 0xFFFFF:
        if handle != stale:
            release(handle)
        handle = lend(array)
    assert handle != stale
    assert release(stale) == -1
    assert share(stale) == 0
    assert failure()[0] == KINDS["released"]
    with pytest.raises(dlw.ReleasedError, match=f"handle {stale} is stale"):
        _core._take(stale)
    with _core._take(handle) as tensor:
        assert np.shares_memory(tensor.numpy(), array)


def test_rule_121_stale_handles_are_refused_for_a_million_others():
    array = np.zeros(2)
    stale = lend(array)
    release(stale)
    kept = [lend(array) for _ in range(1000)]  # of a small table few would be free
    assert len(set(kept)) == 1000
    hold = dlw.from_dlpack(array)
    for _ in range(1 << (14 if sys.platform == "emscripten" else 20)):
        handle = lend(hold)
        assert handle != stale
        release(handle)
    assert release(stale) == -1
    hold.release()
    assert [release(handle) for handle in kept] == [0] * len(kept)


@pytest.mark.skipif(
    "sys.platform == 'emscripten'", reason="JavaScript has the callback"
)
def test_a_million_handles_are_all_that_there_are(dropped):
    """What finds no slot is refused, and nothing of it is lost or given back."""
    array, live = np.zeros(2), dlw.live_tensors()
    handles = [lend(array)]
    while (made := share(handles[0])) != 0:
        handles.append(struct_of(made)[1])
    assert failure()[0] == KINDS["memory"]
    assert len(handles) == (1 << 20) - 1 - 256  # slot 0, and those that stay free
    assert dlw.live_tensors() - live == len(handles)
    set_shape(1)
    assert wrap(7, 0, 1, FLOAT32, 0, 0) == 0
    assert failure()[0] == KINDS["memory"]
    assert dropped == [], "the reference stays the caller's"
    assert borrow(array, 0) == 0
    assert failure()[0] == KINDS["memory"]
    assert [release(handle) for handle in handles] == [0] * len(handles)
    assert dlw.live_tensors() == live
    release(struct_of(wrap(7, 0, 1, FLOAT32, 0, 0))[1])
    assert dropped == [7]


@pytest.mark.parametrize("handle", [0, 1, 5, 0xFFFFF, 0x100000, 2**32 - 1])
def test_forged_handle_is_refused(handle):
    assert release(handle) == -1
    with pytest.raises(dlw.ReleasedError):
        _core._take(handle)


@pytest.mark.parametrize("handle", [2**32, 2**40])
def test_handle_beyond_32_bits_is_refused(handle):
    _, real = struct_of(borrow(np.zeros(2), 0))
    with pytest.raises((dlw.ReleasedError, OverflowError)):
        _core._take(handle + real)
    assert release(real) == 0


def test_share_is_a_hold_of_its_own():
    array = np.arange(4.0)
    struct, first = struct_of(borrow(array, 0))
    other, second = struct_of(share(first))
    assert other.dl_tensor.data == struct.dl_tensor.data
    release(first)
    assert other.dl_tensor.shape[0] == 4
    assert release(second) == 0


def test_pack_makes_a_contiguous_copy():
    array = np.arange(12, dtype=np.int16).reshape(3, 4).T
    _, source = struct_of(borrow(array, 0))
    _, packed = struct_of(pack(source))
    release(source)
    tensor = _core._take(packed)
    assert tensor.strides == (3, 1)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_view_sees_some_of_the_elements():
    array = np.arange(12, dtype=np.float32)
    _, whole = struct_of(borrow(array, 0))
    set_shape(2, 3, strides=(6, -1))
    struct, part = struct_of(view(whole, 2, 4.0))
    assert struct.dl_tensor.shape[:2] == [2, 3]
    assert struct.dl_tensor.strides[:2] == [6, -1]
    assert (
        struct.dl_tensor.data + struct.dl_tensor.byte_offset == array.ctypes.data + 16
    )
    for release_one in (whole, part):
        assert release(release_one) == 0
    assert dlw.live_tensors() == 0


@pytest.mark.parametrize("offset", [-1.0, 9.0, 2.0**53])
def test_a_view_of_elements_that_are_not_there(offset):
    _, whole = struct_of(borrow(np.arange(12, dtype=np.float32), 0))
    set_shape(4, strides=(1,))
    assert view(whole, 1, offset) == 0
    assert failure()[0] == KINDS["unsupported"]
    assert release(whole) == 0


def test_empty_takes_its_shape_from_scratch():
    set_shape(3, 5)
    struct, handle = struct_of(empty(2, FLOAT32, 0))
    assert struct.dl_tensor.data % 256 == 0
    assert _core._take(handle).shape == (3, 5)


def test_empty_too_large():
    set_shape(2**40, 2**40)
    assert empty(2, FLOAT32, 0) == 0
    kind, text = failure()
    assert kind == KINDS["unsupported"]
    assert "address space" in text


def test_borrow_a_tensor_and_a_capsule_producer():
    array = np.arange(3.0)
    tensor = dlw.from_dlpack(array)

    class Producer:  # no buffer protocol
        __dlpack__ = array.__dlpack__

    for obj in (tensor, Producer()):
        struct, handle = struct_of(borrow(obj, 0))
        assert struct.dl_tensor.data == array.ctypes.data
        release(handle)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ([1, 2], "np.asarray"),
        (np.zeros(2, "U3"), "x.view('uint32')"),
        (np.zeros(9, "u1")[1:].view("i4"), "not aligned to 4 bytes"),
    ],
    ids=["list", "str", "odd"],
)
def test_borrow_says_why_not(obj, words):
    """All other dtypes in test_messages.py."""
    assert borrow(obj, 0) == 0
    kind, text = failure()
    assert kind == KINDS["unsupported"]
    assert words in text


def test_borrow_writable_refuses_read_only_memory():
    assert borrow(b"bytes", 1) == 0
    assert failure() == (
        KINDS["unsupported"],
        WRITABLE_WANTED,
    )
    _, handle = struct_of(borrow(b"bytes", 0))
    release(handle)


def test_borrow_a_released_tensor():
    tensor = dlw.empty(2)
    tensor.release()
    assert borrow(tensor, 0) == 0
    assert failure()[0] == KINDS["released"]


def test_producer_errors_are_kept_for_raising():
    class Failing:
        def __dlpack__(self, **keywords):
            raise ZeroDivisionError("mine")

    assert borrow(Failing(), 0) == 0
    assert error_kind() in (KINDS["other"], KINDS["unsupported"])
    assert "mine" in failure()[1]


def test_borrow_and_take_move_a_hold():
    array = np.arange(3.0)
    _, handle = struct_of(borrow(array, 0))
    tensor = _core._take(handle)
    assert np.shares_memory(tensor.numpy(), array)
    with pytest.raises(dlw.ReleasedError):
        _core._take(handle)


def test_words_of_an_error_that_calls_us_again():
    """The text of one of its arguments replaces the exception that is kept."""

    class Argument:
        def __str__(self):
            borrow([], 0)
            return "mine"

    class Failing:
        def __dlpack__(self, **keywords):
            raise OSError(Argument(), "second")

    assert borrow(Failing(), 0) == 0
    assert error_text() == b"[Errno mine] second"
    assert error_kind() == KINDS["unsupported"]  # of the list
    assert "list" in failure()[1]


@pytest.mark.skipif("sys.platform == 'emscripten'", reason="another signature traps")
def test_a_deleter_that_leaves_an_exception_is_told_of(monkeypatch):
    """And leaves it to nobody else."""
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: unraisable.append(args))
    raises = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, c_void_p)
    producer = Forged()
    producer.managed.deleter = raises
    assert release(lend(producer)) == 0
    producer.managed.flags = 1
    assert borrow(producer, 1) == 0
    assert failure()[1] == WRITABLE_WANTED
    assert [each.exc_type for each in unraisable] == [TypeError, TypeError]
    producer.alive.clear()


def as_before():
    """Where Python has the GPU buffers itself, it is called again."""
    on_drop(None)
    if sys.platform != "emscripten":
        from dlpack_web._backends.model.buffers import table

        _core._on_gpu_drop(table._on_drop)


@pytest.fixture
def dropped():
    """Handles of GPU buffers that C let go of."""
    handles = []
    callback = DROP(handles.append)
    on_drop(ctypes.cast(callback, c_void_p))
    yield handles
    as_before()


@pytest.mark.skipif("sys.platform == 'emscripten'", reason="JavaScript runs them")
class TestRun:
    """What JavaScript is called with for a kernel; natively nobody runs any."""

    @pytest.fixture
    def calls(self):
        """What it was called with: a kernel numbered 0 fails; 7 caches its calls by their keys
        alone, as JavaScript does, and none without one."""
        seen, cached = [], set()

        def run(kernel, again):
            key = key_of_call()
            if again:
                seen.append(key)
                return int(kernel == 7 and key in cached)
            seen.append((kernel, *described()))
            if key:
                cached.add(key)
            return int(kernel != 0)

        callback = RUN(run)
        on_run(ctypes.cast(callback, c_void_p))
        yield seen
        on_run(None)

    def test_every_fact_comes_across(self, calls):
        largest = 2**53 - 1
        with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
            device, args = _core._arguments(1.5, tensor, float("inf"))
            assert device == tensor.__dlpack_device__()[1]
            assert args == (1.5, tensor, float("inf"))
            assert _core._run(3, largest, (65535, 2, 1), args, ()) is True
            ((kernel, facts, arguments),) = calls
            assert (kernel, facts) == (3, [largest, 65535, 2, 1, 3])
            assert arguments[::2] == [(NUMBER, 1.5), (NUMBER, float("inf"))]
            kind, address = arguments[1]
            assert (kind, struct_of(int(address))[0].dl_tensor.data) == (TENSOR, 7)

    def test_a_function_finds_the_same(self):
        with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
            found = _core._pass(
                lambda *rest: (rest, *described()),
                ("a", 1),
                5,
                (2, 3, 4),
                (tensor, 2.5),
            )
            rest, facts, arguments = found
            assert (rest, facts) == (("a", 1), [5, 2, 3, 4, 2])
            assert arguments[0][0] == TENSOR
            assert arguments[1] == (NUMBER, 2.5)
        with pytest.raises(dlw.ReleasedError):
            _core._pass(described, (), 5, (2, 3, 4), (tensor, 2.5))

    def test_a_tensor_released_meanwhile_is_refused(self, calls):
        """By the __float__ of a later argument, or between the two functions: its struct
        is freed, and JavaScript would read whatever is there now."""

        class Number:
            def __float__(self):
                tensor.release()
                return 2.0

        tensor = dlw.from_dlpack(Forged(device_type=15, data=7))
        _, args = _core._arguments(tensor, Number())
        with pytest.raises(dlw.ReleasedError):
            _core._run(1, 2, (3, 4, 5), args, ())
        assert calls == []

    def test_numpys_scalars_stay_numbers(self):
        """NumPy gives its scalars a __dlpack__ (numpy#32029), as arrays have one."""

        class Scalar(np.float32):
            def __dlpack__(self, **keywords):
                return np.asarray(np.float32(self)).__dlpack__(**keywords)

        with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
            _, args = _core._arguments(tensor, Scalar(2.5), np.int64(3), np.True_)
            assert args == (tensor, 2.5, 3.0, 1.0)
            for array in (np.ones(1), np.array(2.0), memoryview(b"a")):
                with pytest.raises(TypeError, match="argument 1 has type"):
                    _core._arguments(tensor, array)

    def test_as_many_as_there_are(self, calls):
        _core._run(1, 2, (3, 4, 5), tuple(map(float, range(32))), ())
        assert calls[0][2] == [(NUMBER, i) for i in range(32)]
        with pytest.raises(TypeError, match="at most 32 arguments, not 33"):
            _core._run(1, 2, (3, 4, 5), tuple(map(float, range(33))), ())
        assert len(calls) == 1

    def test_a_failure_is_told(self, calls):
        assert _core._run(0, 1, (1, 1, 1), (), ()) is False
        assert len(calls) == 1

    def test_a_cached_call_runs_again(self, calls):
        """With the same tensors and options, and any numbers where numbers were."""
        gpu = [dlw.from_dlpack(Forged(device_type=15, data=7)) for _ in range(3)]
        first, second, other = gpu
        options = [
            None,
            0,
            1,
            -1,
            -2,
            -4,
            True,
            False,
            (),
            (1,),
            (0,),
            (1, 2),
            (4, 2, 1),
            2**53 - 1,
            1 - 2**53,
        ]
        keys = [
            *(((first, 2.5, second), one) for one in options),
            *(((first, 2.5, second), one, None) for one in options),
            ((first, 2.5, second),),
            ((first, second), None),
            ((first, second, first), None),
            ((second, first), None),
            ((first,), None),
            ((first, 2.5), None),
            ((first, 2.5, second, 2.5), None),
            (tuple([first] * 32), None),
        ]
        known = []
        for key in keys:
            assert _core._again(7, key) is False
            _, given = _core._arguments(*key[0])
            assert _core._run(7, 1, (1, 1, 1), given, key) is True
            known.append(key_of_call())
            args = tuple(-7 if type(arg) is float else arg for arg in key[0])
            assert _core._again(7, (args, *key[1:])) is True
            assert key_of_call() == known[-1]
            for at in (i for i, arg in enumerate(args) if type(arg) is int):
                value = ctypes.c_double.from_address(call() + 8 * (5 + 2 * at + 1))
                assert value.value == -7
        assert len(set(known)) == len(keys)
        assert _core._again(8, keys[0]) is False  # says JavaScript
        asked = len(calls)
        for args, *rest in (
            ((first, True, second), None),
            ((first, 10**400, second), None),
            ((first, np.float32(1), second), None),
            ((first, 10**400, np.float32(3)), None),
            ((first, "2", second), None),
            ((first,) * 33, None),
            *(
                ((first, 2.5, second), one)
                for one in (
                    [1],
                    1.0,
                    "1",
                    np.int64(1),
                    10**400,
                    2**53,
                    -(2**53),
                    (1.0,),
                    (True,),
                    (10**400, np.int64(1)),
                    (None,),
                    ((1,),),
                    (1,) * 64,
                )
            ),
        ):
            assert _core._again(7, (args, *rest)) is False
            _core._run(7, 1, (1, 1, 1), (first, 1.0, second), (args, *rest))
            assert key_of_call() == ()
        ran = [type(facts) is list for _, facts, *_ in calls[asked:]]
        assert all(ran), "JavaScript is not asked for such calls"
        for tensor in (first, other):
            tensor.release()
        assert _core._again(7, keys[0]) is False  # the checked way raises ReleasedError
        second.release()
        assert _core._again(0, keys[0]) is False
        for wrong in ((7, ()), (7, [()]), (7, ([first],)), (7,), ("7", keys[0])):
            with pytest.raises(TypeError, match=r"_again|str"):
                _core._again(*wrong)

    def test_only_what_a_kernel_takes_as_it_is_gets_a_key(self, calls):
        """A kernel of a formula may take other arguments, or more."""
        with (
            dlw.from_dlpack(Forged(device_type=15, data=7)) as a,
            dlw.from_dlpack(Forged(device_type=15, data=7)) as b,
        ):
            for given, args, cached in (
                ((a, 2.0, b), (a, 2, b), True),
                ((a, 2.0, b, a), (a, 2, b), True),  # sizes, which are ours
                ((a, 2.0, b, 3.0), (a, 2, b), False),
                ((a, b), (a, 2, b), False),
                ((b, 2.0, a), (a, 2, b), False),
                ((a, 2.0, b), (a, b, 2), False),
                ((a, b, 2.0), (a, 2, b), False),
                ((), (a,), False),
            ):
                _core._run(7, 1, (1, 1, 1), given, (args,))
                assert bool(key_of_call()) is cached
                _core._run(7, 1, (1, 1, 1), given, ())
                assert key_of_call() == ()

    def test_a_tensor_at_the_same_place_is_another(self, calls):
        for _ in range(20):
            with dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor:
                assert not _core._again(7, ((tensor,),))
                _core._run(7, 1, (0, 0, 0), (tensor,), ((tensor,),))
                assert _core._again(7, ((tensor,),))

    @pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
    def test_errors_of_a_look_up_are_raised(self, error):
        class Array(list):
            def __getattr__(self, name):
                raise error if name == "__dlpack__" else AttributeError(name)

        with (
            dlw.from_dlpack(Forged(device_type=15, data=7)) as tensor,
            pytest.raises(error),
        ):
            _core._arguments(tensor, Array())

    @pytest.mark.parametrize(
        "wrong",
        [
            ("3", 1, (1, 1, 1), ()),
            (3, 1, (1, 1, 1), (1,)),
            (3, 1, (1, 1, 1), ("x",)),
            (3, 1, (1, 1, 1), []),
            (3, 1, (1, 1), ()),
            (3, 1, (1, 1, 1)),
            (3, 1, (1, 1, 10**400), ()),
            (2**31, 1, (1, 1, 1), ()),
        ],
    )
    def test_nonsense_is_refused(self, calls, wrong):
        with pytest.raises((TypeError, OverflowError)):
            _core._run(*wrong, ())
        if wrong[0] == 3:
            with pytest.raises((TypeError, OverflowError)):
                _core._pass(len, ((),), *wrong[1:])
        assert calls == []

    def test_nobody_who_runs(self):
        with pytest.raises(RuntimeError, match="no JavaScript"):
            _core._run(1, 1, (1, 1, 1), (), ())


@pytest.mark.skipif(
    "sys.platform == 'emscripten'", reason="JavaScript has the callback"
)
class TestWrap:
    """kDLWebGPU tensors around made-up handles; natively nobody else listens."""

    def test_handle_is_dropped_with_the_last_hold(self, dropped):
        set_shape(2, 3, byte_offset=512)
        struct, handle = struct_of(wrap(0xABCD, 4, 2, FLOAT32, 0, 0))
        assert struct.dl_tensor.device_type == 15
        tensor = _core._take(handle)
        assert tensor.device == (15, 4)
        assert tensor.byte_offset == 512
        assert tensor.nbytes == 24
        capsule = tensor.__dlpack__(max_version=(1, 0))
        tensor.release()
        assert dropped == []
        del capsule
        assert dropped == [0xABCD]

    def test_a_function_for_dropped_handles_that_fails_is_named(self, monkeypatch):
        def fails(handle):
            raise ZeroDivisionError(handle)

        unraisable = []
        monkeypatch.setattr(
            sys, "unraisablehook", lambda args: unraisable.append((*args[:2], args[4]))
        )
        _core._on_gpu_drop(fails)
        set_shape(1)
        release(struct_of(wrap(9, 0, 1, FLOAT32, 0, 0))[1])
        as_before()
        ((kind, value, named),) = unraisable
        assert (kind, value.args, named) == (ZeroDivisionError, (9,), fails)

    def test_failed_wrap_leaves_the_handle(self, dropped):
        set_shape(-1)
        assert wrap(7, 0, 1, FLOAT32, 0, 0) == 0
        assert failure()[0] == KINDS["unsupported"]
        assert dropped == []

    def test_empty_tensor_gives_its_handle_back(self, dropped):
        set_shape(0)
        _, handle = struct_of(wrap(9, 0, 1, FLOAT32, 0, 0))
        release(handle)
        assert dropped == [9]

    def test_read_only_is_kept(self, dropped):
        set_shape(1)
        _, handle = struct_of(wrap(9, 0, 1, FLOAT32, 1, 0))
        assert _core._take(handle).read_only

    def test_buffers_beyond_4_gib_are_described(self, dropped):
        set_shape(2**31)
        _, handle = struct_of(wrap(9, 0, 1, FLOAT32, 0, 0))
        assert _core._take(handle).nbytes == 2**33


@pytest.mark.parametrize(
    "first", [-1, -(2**40), 3, 2**53, -(2.0**63), float("nan"), 1e300]
)
def test_chunks_begin_within_the_tensor(first):
    handle = lend(np.zeros(3, np.float32))
    assert chunk(handle, FLOAT32, first) == 0
    assert failure()[0] == KINDS["other"]
    release(handle)


def test_tensors_without_elements_have_no_chunk():
    handle = lend(np.zeros((0, 3), np.float32))
    assert chunk(handle, FLOAT32, 0) == 0
    assert "no element 0" in failure()[1]
    release(handle)


def test_webgpu_tensors_have_no_chunk():
    handle = lend(Forged(device_type=15, data=7))
    assert chunk(handle, FLOAT32, 0) == 0
    assert "kDLWebGPU (type 15" in failure()[1]
    assert pack(handle) == 0
    assert "host memory only" in failure()[1]
    release(handle)


def test_packed_elements_do_not_come_in_chunks():
    """Each would be taken for a byte, far beyond their memory."""
    tensor = dlw.empty(64, "uint1")
    handle = lend(tensor)
    assert chunk(handle, 1 | 1 << 8 | 1 << 16, 0) == 0
    assert "sub-byte" in failure()[1]
    release(handle)
    tensor.release()


def test_memory_errors_have_their_kind():
    class Producer:
        def __dlpack__(self, **keywords):
            raise MemoryError

    assert borrow(Producer(), 0) == 0
    assert failure() == (KINDS["memory"], "")
