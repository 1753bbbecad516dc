"""Rules 93 to 105: `__dlpack_c_exchange_api__`, ours and another producer's."""

import ctypes
import sys
from ctypes import addressof, byref, c_void_p

import numpy as np
import pytest
from forge import (
    CPU,
    DELETER,
    DESTRUCTOR,
    FROM_OBJECT,
    READ_ONLY,
    SET_ERROR,
    SUBBYTE_PADDED,
    Api,
    DLTensor,
    Forged,
    Versioned,
    api_of,
    get_pointer,
    is_valid,
    new_capsule,
)

import dlpack_web as dlw

NAME = b"dlpack_exchange_api"
FOR_EVER = []  # exchange functions live as long as the process does (rule 95)


@pytest.fixture(scope="module")
def api():
    return api_of(dlw.Tensor)


def delete(address):
    DELETER(Versioned.from_address(address).deleter)(address)


def object_at(address):
    """The object of a new reference, which is given up."""
    value = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(value))
    return value


# --- other producers', as we consume them ---------------------------------------------


def producer_type(
    *, version=(1, 3), answer=None, previous=None, name=NAME, attribute=None
):
    """A producer whose type has exchange functions made here.

    `answer(obj)` is what from_object does; it returns the status, or (status, address).
    """
    calls = []

    def from_object(obj, out):
        calls.append(obj)
        result = answer(obj) if answer else (0, addressof(obj.forged.managed))
        status, address = result if isinstance(result, tuple) else (result, None)
        out[0] = address
        return status

    made = Api(*version)
    made.from_object = FROM_OBJECT(from_object)
    made.prev_api = addressof(previous) if previous is not None else None
    capsule = new_capsule(addressof(made), name, DESTRUCTOR())

    FOR_EVER.append((made, previous))

    class Producer:
        __dlpack_c_exchange_api__ = capsule if attribute is None else attribute
        keep = (made, previous, calls)

        def __init__(self, **fields):
            self.forged = Forged(**fields)
            Forged.alive.add(self.forged)
            self.asked = 0

        def __dlpack__(self, **keywords):
            self.asked += 1
            return self.forged.__dlpack__(**keywords)

    Producer.calls = calls
    return Producer


def test_rule_093_the_functions_of_the_type_are_used():
    Producer = producer_type()  # noqa: N806
    producer = Producer()
    tensor = dlw.from_dlpack(producer)
    assert (Producer.calls, producer.asked) == ([producer], 0)
    assert np.asarray(tensor)[1, 2] == 5
    assert producer.forged.deleted == 0
    tensor.release()
    assert producer.forged.deleted == 1


def test_rule_093_a_type_may_say_anything_of_its_bases():
    """Python lets a metaclass define __mro__: what it gives is not believed."""

    class Meta(type):
        __mro__ = property(lambda cls: [cls])

    Producer = producer_type()  # noqa: N806
    producer = Meta("Odd", (Producer,), {})()
    dlw.from_dlpack(producer).release()
    assert (Producer.calls, producer.asked) == ([], 1)


def test_rule_093_the_method_of_a_subclass_is_used():
    Producer = producer_type()  # noqa: N806

    class Method:
        def __dlpack__(self, **keywords):
            return super().__dlpack__(**keywords)

    class Own(Producer):
        def __dlpack__(self, **keywords):
            return super().__dlpack__(**keywords)

    class Mixed(Method, Producer):
        pass

    for producer in (Own(), Mixed()):
        dlw.from_dlpack(producer).release()
        assert (Producer.calls, producer.asked) == ([], 1)


@pytest.mark.parametrize("looked_up", ["__mro__", "__dict__"])
def test_rule_093_what_looking_for_the_method_raises_comes_through(looked_up):
    class Meta(type):
        broken = False

        def __getattribute__(cls, name):
            if name == looked_up and Meta.broken:
                raise ZeroDivisionError(name)
            return super().__getattribute__(name)

    Producer = producer_type()  # noqa: N806
    producer = Meta("Watched", (Producer,), {})()
    dlw.from_dlpack(producer).release()
    assert len(Producer.calls) == 1
    Meta.broken = True
    with pytest.raises(ZeroDivisionError):
        dlw.from_dlpack(producer)
    assert (len(Producer.calls), producer.asked) == (1, 0)


def test_rule_093_an_attribute_of_the_object_is_not():
    class Producer(Forged):
        pass

    producer = Producer()
    producer.__dlpack_c_exchange_api__ = dlw.Tensor.__dlpack_c_exchange_api__
    assert dlw.from_dlpack(producer).dtype == "float32"


@pytest.mark.parametrize(
    "keywords", [{"copy": True}, {"copy": False}, {"device": "cpu"}]
)
def test_rule_093_requests_go_to_the_method(keywords):
    """The functions have no way to ask for a copy or a device."""
    Producer = producer_type()  # noqa: N806
    producer = Producer()
    dlw.from_dlpack(producer, **keywords).release()
    assert (Producer.calls, producer.asked) == ([], 1)
    Forged.alive.discard(producer.forged)


@pytest.mark.parametrize(
    "options",
    [{"name": b"other"}, {"attribute": 1234}, {"attribute": "capsule"}],
    ids=str,
)
def test_rule_094_anything_but_the_capsule_is_ignored(options):
    """Early drafts had an int there; no address from outside is followed."""
    Producer = producer_type(**options)  # noqa: N806
    producer = Producer()
    dlw.from_dlpack(producer).release()
    assert (Producer.calls, producer.asked) == ([], 1)


def test_rule_094_095_ours_is_a_capsule_without_a_destructor():
    capsule = dlw.Tensor.__dlpack_c_exchange_api__
    assert is_valid(id(capsule), NAME)
    get_destructor = ctypes.pythonapi.PyCapsule_GetDestructor
    get_destructor.restype = c_void_p
    get_destructor.argtypes = (ctypes.py_object,)
    assert get_destructor(capsule) is None
    assert get_pointer(capsule, NAME) == addressof(api_of(dlw.Tensor))


def test_rule_096_ours_has_our_version_and_no_older_one(api):
    assert (api.major, api.minor, api.prev_api) == (1, 3, None)


@pytest.mark.parametrize("minor", [0, 3, 99])
def test_rule_096_any_minor_of_our_major_is_used(minor):
    Producer = producer_type(version=(1, minor))  # noqa: N806
    dlw.from_dlpack(Producer()).release()
    assert len(Producer.calls) == 1


def test_rule_096_newer_majors_lead_to_ours():
    Old = producer_type()  # noqa: N806
    made = Old.keep[0]
    Producer = producer_type(version=(3, 0), previous=made)  # noqa: N806
    dlw.from_dlpack(Producer()).release()
    assert (len(Producer.calls), len(Old.calls)) == (0, 1)


@pytest.mark.parametrize("version", [(2, 0), (0, 8)])
def test_rule_096_other_majors_alone_are_not_used(version):
    Producer = producer_type(version=version)  # noqa: N806
    producer = Producer()
    dlw.from_dlpack(producer).release()
    assert (Producer.calls, producer.asked) == ([], 1)


def test_rule_096_a_circle_of_versions_ends():
    Producer = producer_type(version=(2, 0))  # noqa: N806
    made = Producer.keep[0]
    made.prev_api = addressof(made)
    producer = Producer()
    dlw.from_dlpack(producer).release()
    assert producer.asked == 1


def test_rule_097_all_functions_are_there(api):
    for name in ("allocate", "from_object", "to_object", "describe", "current_stream"):
        assert ctypes.cast(getattr(api, name), c_void_p).value


def test_rule_097_a_null_function_is_not_called():
    Producer = producer_type()  # noqa: N806
    Producer.keep[0].from_object = FROM_OBJECT()
    producer = Producer()
    dlw.from_dlpack(producer).release()
    assert producer.asked == 1


def test_rule_098_099_failures_are_minus_1_with_an_exception(api):
    for wrong in (None, 5, np.zeros(2)):
        out = c_void_p(1)
        with pytest.raises(TypeError, match=r"expected a dlpack_web\.Tensor"):
            api.from_object(wrong, byref(out))
        assert out.value is None
        with pytest.raises(TypeError, match=r"expected a dlpack_web\.Tensor"):
            api.describe(wrong, byref(DLTensor()))
    tensor = dlw.empty(2)
    tensor.release()
    with pytest.raises(dlw.ReleasedError, match="was released"):
        api.from_object(tensor, byref(c_void_p()))
    with pytest.raises(dlw.ReleasedError, match="was released"):
        api.describe(tensor, byref(DLTensor()))


@pytest.mark.parametrize("answer", [-1, (0, None), (-1, 0x1234)])
def test_rule_098_after_failures_dlpack_is_asked(answer):
    """With an exception or without one: what __dlpack__ says is for people."""
    Producer = producer_type(answer=lambda obj: answer)  # noqa: N806
    producer = Producer()
    with dlw.from_dlpack(producer) as tensor:
        assert np.asarray(tensor)[1, 2] == 5
    assert producer.forged.deleted == 1


@pytest.mark.parametrize(
    "fields", [{"lanes": 0}, {"device_type": 2}, {"major": 2}], ids=str
)
def test_rule_099_what_we_refuse_is_deleted_once(fields):
    Producer = producer_type()  # noqa: N806
    producer = Producer(**fields)
    with pytest.raises(BufferError):
        dlw.from_dlpack(producer)
    assert producer.forged.deleted == 2  # once each by both ways


# --- ours, as a consumer in C calls them ----------------------------------------------


@pytest.mark.parametrize(("code", "bits"), [(5, 32), (5, 64), (5, 128), (18, 32)])
def test_rule_099_complex_numbers_are_asked_of_dlpack(code, bits):
    """PyTorch's functions hand out conjugated views as if they were plain."""
    Producer = producer_type()  # noqa: N806
    producer = Producer(code=code, bits=bits, shape=[1, 1])
    with dlw.from_dlpack(producer) as tensor:
        assert tensor.dtype.code == code
        assert (len(Producer.calls), producer.asked) == (1, 1)
        assert producer.forged.deleted == 1, "what the functions gave"
    assert producer.forged.deleted == 2


@pytest.mark.parametrize("by", ["functions", "__dlpack__"])
@pytest.mark.parametrize("options", [{}, {"copy": True}, {"copy": False}], ids=str)
@pytest.mark.parametrize(
    "fields",
    [
        {"shape": [3], "strides": [2], "ndim": 1},
        {"shape": [1, 1], "strides": [1, 1]},
        {"shape": [3, 2], "strides": [1, 3]},
    ],
    ids=str,
)
def test_rule_099_a_negation_that_is_not_said_is_refused(fields, options, by):
    """PyTorch's exports of x.conj().imag leave it out."""
    Producer = lazy(producer_type(answer=fails if by == "__dlpack__" else None))  # noqa: N806
    for answer in (True, False, TypeError, KeyboardInterrupt, MemoryError):
        producer = Producer(**fields)
        producer.answer = answer
        if answer in (False, TypeError):  # a method of the same name, of something else
            dlw.from_dlpack(producer, **options).release()
        elif answer is True:
            with pytest.raises(BufferError, match=r"negated lazily, .*\.resolve_neg\("):
                dlw.from_dlpack(producer, **options)
        else:
            with pytest.raises(answer):
                dlw.from_dlpack(producer, **options)
        assert producer.forged.deleted >= 1


def fails(obj):
    return -1


def lazy(base):
    """A producer that says whether it is negated."""

    class Producer(base):
        def is_neg(self):
            if isinstance(self.answer, bool):
                return self.answer
            raise self.answer

    return Producer


def test_rule_099_only_views_of_floats_are_asked_for_a_negation():
    Producer = lazy(producer_type())  # noqa: N806
    for fields in ({}, {"code": 0, "strides": [1, 2]}, {"code": 1, "shape": [1, 1]}):
        producer = Producer(**fields)
        producer.answer = AssertionError
        with dlw.from_dlpack(producer) as tensor:
            assert tensor.ndim == 2


def test_rule_099_from_object_is_a_hold_of_its_own(api):
    array = np.arange(6, dtype=np.float32)
    array.flags.writeable = False
    tensor = dlw.from_dlpack(array)
    out = c_void_p()
    assert api.from_object(tensor, byref(out)) == 0
    tensor.release()
    struct = Versioned.from_address(out.value)
    assert (struct.major, struct.minor, struct.flags) == (1, 3, READ_ONLY)
    assert struct.dl_tensor.data == array.ctypes.data
    delete(out.value)


def test_rule_100_to_object_takes_over(api):
    producer, out = Forged(), c_void_p()
    assert api.to_object(addressof(producer.managed), byref(out)) == 0
    tensor = object_at(out.value)
    assert type(tensor) is dlw.Tensor
    assert np.asarray(tensor)[1, 2] == 5
    assert producer.deleted == 0
    tensor.release()
    assert producer.deleted == 1


def test_rule_100_to_object_leaves_what_it_refuses(api):
    producer, out = Forged(lanes=0), c_void_p(1)
    with pytest.raises(BufferError, match="lanes 0"):
        api.to_object(addressof(producer.managed), byref(out))
    assert out.value is None
    assert producer.deleted == 0
    out = c_void_p(1)
    with pytest.raises(ValueError, match="NULL"):
        api.to_object(None, byref(out))
    assert out.value is None


def test_rule_100_round_trip(api):
    array = np.arange(4.0)
    with dlw.from_dlpack(array) as tensor:
        out, back = c_void_p(), c_void_p()
        api.from_object(tensor, byref(out))
        api.to_object(out.value, byref(back))
    assert np.shares_memory(object_at(back.value).numpy(), array)


def test_rule_101_describe_borrows(api):
    array = np.arange(6.0).reshape(2, 3)[:, ::-2]
    with dlw.from_dlpack(array) as tensor:
        before, out = (dlw.live_tensors(), sys.getrefcount(array)), DLTensor()
        assert api.describe(tensor, byref(out)) == 0
        assert (dlw.live_tensors(), sys.getrefcount(array)) == before
        assert (out.data + out.byte_offset, out.ndim) == (array.ctypes.data, 2)
        assert (out.shape[:2], out.strides[:2]) == ([2, 2], [3, -2])
        assert (out.code, out.bits, out.lanes, out.device_type) == (2, 64, 1, CPU)


def test_rule_101_describe_refuses_what_a_struct_without_flags_cannot_say(api):
    """Padded elements would be read as packed ones."""
    padded = Forged(code=0, bits=4, flags=SUBBYTE_PADDED)
    with dlw.from_dlpack(padded) as tensor, pytest.raises(BufferError, match="padded"):
        api.describe(tensor, byref(DLTensor()))
    with dlw.from_dlpack(Forged(code=0, bits=4)) as tensor:
        assert api.describe(tensor, byref(DLTensor())) == 0


def allocate(api, **fields):
    """(struct address or None, errors) for a prototype; data is never read."""
    producer = Forged(data=None, strides=None, **fields)
    prototype = addressof(producer.managed) + Versioned.dl_tensor.offset
    out, errors = c_void_p(), []
    set_error = SET_ERROR(lambda context, kind, message: errors.append(kind))
    status = api.allocate(prototype, addressof(out), None, set_error)
    assert status == (-1 if errors else 0)
    return out.value, errors


def test_rule_102_allocator(api):
    address, errors = allocate(api)
    assert errors == []
    tensor = Versioned.from_address(address).dl_tensor
    assert tensor.data % 256 == 0
    assert (tensor.device_type, tensor.shape[:2]) == (CPU, [2, 3])
    assert tensor.strides[:2] == [3, 1]
    delete(address)


@pytest.mark.parametrize(
    "fields",
    [{"lanes": 0}, {"device_type": 15}, {"shape": (2**40, 2**40)}, {"ndim": -1}],
    ids=str,
)
def test_rule_102_allocator_tells_errors_once(api, fields):
    assert allocate(api, **fields) == (None, [b"BufferError"])


@pytest.mark.parametrize("device", [(1, 0), (15, 2)])
def test_rule_103_there_are_no_streams(api, device):
    out = c_void_p(1)
    assert api.current_stream(*device, byref(out)) == 0
    assert out.value is None


def test_rule_104_nothing_is_synchronised(api):
    """A tensor on a GPU is handed out without reading it back."""
    producer = Forged(device_type=15, data=0x1234)
    with dlw.from_dlpack(producer) as tensor:
        out = c_void_p()
        assert api.from_object(tensor, byref(out)) == 0
        assert Versioned.from_address(out.value).dl_tensor.data == 0x1234
        delete(out.value)


def test_rule_105_subclasses_inherit(api):
    class Mine(dlw.Tensor):
        pass

    assert Mine.__dlpack_c_exchange_api__ is dlw.Tensor.__dlpack_c_exchange_api__

    class Further(producer_type()):
        pass

    dlw.from_dlpack(Further()).release()
    assert len(Further.calls) == 1
