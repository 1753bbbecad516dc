# More than 500 lines: one suite, whose tests share their fixtures.
"""Arrow's C data interface, against structs made by hand: what is right comes as it is,
what is wrong is refused, and everything is released once."""

import ctypes
import gc
import json
import random
import sys
from types import SimpleNamespace
from typing import ClassVar

import forge
import numpy as np
import pytest
from arrow_forge import (
    RELEASE_SCHEMA,
    Array,
    Forged,
    Schema,
    bitmap,
    capsule,
    extension,
    inside,
    metadata,
    read_array,
    read_type,
)

import dlpack_web as dlw
from dlpack_web import _core

LETTERS = {
    "int8": b"c",
    "uint8": b"C",
    "int16": b"s",
    "uint16": b"S",
    "int32": b"i",
    "uint32": b"I",
    "int64": b"l",
    "uint64": b"L",
    "float16": b"e",
    "float32": b"f",
    "float64": b"g",
}
TIMES = dict.fromkeys((b"tdD", b"tts", b"ttm"), "int32")
TIMES |= dict.fromkeys(
    (b"tdm", b"ttu", b"ttn", b"tDs", b"tDm", b"tDu", b"tDn"), "int64"
)
TIMES |= dict.fromkeys((b"tss:", b"tsm:UTC", b"tsu:+03:32", b"tsn:a/b"), "int64")
SIX = np.arange(6, dtype="i4")


@pytest.fixture(autouse=True)
def producers():
    yield
    gc.collect()  # whoever took an array has released it
    Forged.alive.clear()


def plain(values=SIX, **changed):
    return {"length": len(values), "buffers": [None, values], **changed}


class TestImport:
    @pytest.mark.parametrize("name", LETTERS)
    def test_memory_is_shared_and_moved(self, name):
        values = np.arange(7).astype(name)
        producer = Forged(LETTERS[name], plain(values))
        with dlw.from_arrow(producer) as t:
            assert (t.dtype, t.shape, t.read_only) == (name, (7,), True)
            assert np.shares_memory(t.numpy(), values)
            assert not producer.arrays[0].release  # ours now
            assert producer.released["array"] == 0
        gc.collect()
        assert producer.released["array"] == 1

    @pytest.mark.parametrize("letters", TIMES)
    def test_times_are_counts_of_their_unit(self, letters):
        counts = np.arange(-2, 5, dtype=TIMES[letters])
        with dlw.from_arrow(Forged(letters, plain(counts))) as t:
            assert (t.dtype, t.shape) == (TIMES[letters], (7,))
            assert np.shares_memory(t.numpy(), counts)
        pairs = {"length": 3, "buffers": [None], "children": [plain(counts)]}
        with dlw.from_arrow(Forged((b"+w:2", [(b"item", letters)]), pairs)) as t:
            assert t.numpy().tolist() == counts[:6].reshape(3, 2).tolist()

    def test_who_holds_on(self):
        producer = Forged(b"i", plain())
        array = dlw.from_arrow(producer).numpy()
        gc.collect()
        assert producer.released["array"] == 0
        assert array.tolist() == SIX.tolist()
        del array
        gc.collect()
        assert producer.released["array"] == 1

    def test_lists_are_axes(self):
        """Each level has an offset, and nulls of the outermost are its own."""
        values = np.arange(100, dtype="f4")
        inner = {"length": 30, "offset": 2, "buffers": [None]}
        inner["children"] = [plain(values, offset=4)]
        outer = {"length": 5, "offset": 1, "children": [inner]}
        outer["buffers"] = [bitmap([1, 0, 1, 1, 1], 1)]
        lists = (b"+w:3", [(b"item", (b"+w:2", [(b"item", b"f")]))])
        t, valid = dlw.from_arrow(Forged(lists, outer), nulls="mask")
        assert t.shape == (5, 3, 2)
        first = 4 + 2 * (2 + 3 * 1)
        assert (t.numpy().ravel() == values[first : first + 30]).all()
        assert valid.numpy().tolist() == [True, False, True, True, True]
        t.release()
        assert t.released

    def test_nulls_within_lists(self):
        child = plain(np.arange(6), null_count=2)
        child["buffers"][0] = bitmap([1, 1, 0, 0, 1, 1])
        outer = {"length": 3, "buffers": [None], "children": [child]}
        lists = (b"+w:2", [(b"item", b"l")])
        for nulls in ("refuse", "mask"):  # which has a bool for each row alone
            with pytest.raises(BufferError, match="2 elements of lists are null"):
                dlw.from_arrow(Forged(lists, outer), nulls=nulls)
        outer["buffers"] = [bitmap([1, 0, 1])]  # of a list that is null itself
        pair = dlw.from_arrow(Forged(lists, outer), nulls="mask")
        assert pair.values.shape == (3, 2)
        assert pair.valid.numpy().tolist() == [True, False, True]

    def test_binary_of_one_size(self):
        raw = np.arange(24, dtype="u1")
        t = dlw.from_arrow(Forged(b"w:4", {**plain(raw), "length": 5, "offset": 1}))
        assert t.numpy().tolist() == raw[4:].reshape(5, 4).tolist()

    def test_columns(self):
        rows = {"length": 3, "offset": 2, "buffers": [None]}
        rows["children"] = [plain(SIX), plain(np.arange(9.0), offset=3)]
        table = (b"+s", [(b"a", b"i"), (b"b", b"g")])
        t = dlw.from_arrow(Forged(table, rows), column="b")
        assert t.numpy().tolist() == [5, 6, 7]
        t = dlw.from_arrow(Forged(table, rows), column="a")
        assert t.numpy().tolist() == [2, 3, 4]
        with pytest.raises(ValueError, match="null character"):
            dlw.from_arrow(Forged(table, rows), column="a\0b")
        with pytest.raises(BufferError, match="this is an array"):
            dlw.from_arrow(Forged(b"i", plain()), column="a")

    def test_rows_that_are_null(self):
        """A struct has nulls of its own: an element is valid where both say so."""
        table = (b"+s", [(b"a", b"i"), (b"b", (b"+w:2", [(b"item", b"g")]))])
        twelve = np.arange(12.0)
        pairs = {"length": 6, "buffers": [bitmap([1, 1, 1, 0, 1, 1])]}
        inner = plain(twelve, null_count=2)
        inner["buffers"][0] = bitmap([1] * 6 + [0, 0] + [1] * 4)
        pairs["children"] = [inner]
        rows = {"length": 3, "offset": 2, "buffers": [bitmap([0, 1, 0, 1, 1])]}
        rows["children"] = [plain(), pairs]
        for stream in (False, True):
            for column, wanted, there in [
                ("a", [2, 3, 4], [False, True, True]),
                ("b", twelve.reshape(6, 2)[2:5].tolist(), [False, False, True]),
            ]:
                forged = Forged(table, rows, stream=stream)
                t, valid = dlw.from_arrow(forged, column=column, nulls="mask")
                assert t.numpy().tolist() == wanted
                assert valid.numpy().tolist() == there
        with pytest.raises(BufferError, match="2 of 3 elements are null"):
            dlw.from_arrow(Forged(table, rows), column="b")
        pairs["buffers"] = [
            None
        ]  # then element 3, whose row is there, has nulls within
        with pytest.raises(BufferError, match="2 elements of lists are null"):
            dlw.from_arrow(Forged(table, rows), column="b")
        rows["buffers"] = [bitmap([0, 1, 0, 0, 1])]
        _, valid = dlw.from_arrow(Forged(table, rows), column="b", nulls="mask")
        assert valid.numpy().tolist() == [False, False, True]
        rows["null_count"] = 0  # which says that there are none
        dlw.from_arrow(Forged(table, rows), column="a")

    @pytest.mark.parametrize("options", [{}, {"nulls": "refuse"}], ids=str)
    def test_nulls_refused(self, options):
        array = {"length": 6, "buffers": [bitmap([1, 0, 1, 1, 0, 1]), SIX]}
        said = r"^2 of 6 elements are null, .* from_arrow\(x, nulls='mask'\), which ret"
        with pytest.raises(BufferError, match=said):
            dlw.from_arrow(Forged(b"i", array), **options)
        array["buffers"][0] = bitmap([1] * 6)  # a bitmap, and no nulls
        with dlw.from_arrow(Forged(b"i", array), **options) as t:
            assert t.numpy().tolist() == SIX.tolist()

    def test_no_elements(self):
        assert dlw.from_arrow(Forged(b"i", plain(SIX[:0]))).shape == (0,)
        nowhere = {"length": 0, "buffers": [None, None]}
        assert dlw.from_arrow(Forged(b"f", nowhere)).shape == (0,)
        assert dlw.from_arrow(Forged(b"b", nowhere)).shape == (0,)

    def test_devices(self):
        t = dlw.from_arrow(Forged(b"i", plain(), device=(1, None)))
        assert t.numpy().tolist() == SIX.tolist()
        for device in ((2, None), (1, 8)):
            with pytest.raises(BufferError, match=f"device of type {device[0]}"):
                dlw.from_arrow(Forged(b"i", plain(), device=device))

    @pytest.mark.parametrize(
        ("letters", "said"),
        [
            (b"u", "string"),
            (b"vz", "binary view"),
            (b"d:9,2", "decimal"),
            (b"tiD", "interval.*its parts"),
            (b"+l", "list.*its values and its offsets.*fixed-size"),
            (b"+L", "list"),
            (b"+ud:0", "union"),
            (b"+r", "run-end"),
            (b"n", "null"),
            (b"t", "unknown"),
            (b"ts", "unknown"),
            (b"tss", "unknown"),
            (b"tsD:", "unknown"),
            (b"tdDs", "unknown"),
            (b"ttD", "unknown"),
            (b"tDn:", "unknown"),
            (b"?", "unknown"),
            (b"", "unknown"),
            (b"ii", "unknown"),
        ],
    )
    def test_types_without_a_dtype(self, letters, said):
        producer = Forged(letters, plain())
        with pytest.raises(BufferError, match=said):
            dlw.from_arrow(producer)
        assert producer.released == {"schema": 1, "array": 1, "stream": 0}

    def test_dictionaries(self):
        producer = Forged(b"i", plain())
        producer.schema.dictionary = ctypes.pointer(Schema())
        with pytest.raises(BufferError, match="indices or its values"):
            dlw.from_arrow(producer)

    @pytest.mark.parametrize("x", [None, 3, "x", SIX, b"abc"])
    def test_what_does_not_speak_it(self, x):
        with pytest.raises(TypeError, match="__arrow_c_array__"):
            dlw.from_arrow(x)

    def test_nonsense(self):
        with pytest.raises(TypeError, match="name"):
            dlw.from_arrow(Forged(b"i", plain()), column=3)
        for wrong in ("drop", "keep", None, True):
            told = f"^nulls must be 'refuse' or 'mask', not {wrong!r}$"
            with pytest.raises(ValueError, match=told):
                dlw.from_arrow(Forged(b"i", plain()), nulls=wrong)
        producer = Forged(b"i", plain())
        for wrong in (None, (1, 2), producer._give()[:1], producer._give()[::-1]):
            producer.__arrow_c_array__ = lambda wrong=wrong: wrong
            with pytest.raises((TypeError, ValueError)):
                dlw.from_arrow(producer)


def tensor_type(parameters, letters=b"+w:24", item=b"i"):
    """A forged arrow.fixed_shape_tensor."""
    if not isinstance(parameters, bytes):
        parameters = json.dumps(parameters).encode()
    said = extension(b"arrow.fixed_shape_tensor", parameters)
    return (letters, [(b"item", item)], said)


class TestExtensions:
    """Types of Arrow's that are another type with a name: what the name means."""

    FIFTY = np.arange(2 * 24 + 2, dtype="i4")
    ITEMS: ClassVar = {"length": 48, "offset": 2, "buffers": [None, FIFTY]}
    TWO: ClassVar = {"length": 2, "buffers": [None], "children": [ITEMS]}
    PHYSICAL = FIFTY[2:].reshape(2, 2, 3, 4)

    def taken(self, parameters, **more):
        return dlw.from_arrow(Forged(tensor_type(parameters), self.TWO, **more))

    @pytest.mark.parametrize("stream", [False, True])
    def test_tensors_have_their_shape(self, stream):
        t = self.taken({"shape": [2, 3, 4]}, stream=stream)
        assert (t.shape, t.strides) == ((2, 2, 3, 4), (24, 12, 4, 1))
        assert np.shares_memory(t.numpy(), self.FIFTY)
        assert (t.numpy() == self.PHYSICAL).all()

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("word", ["permutation", "permutations"])
    def test_tensors_have_their_permutation(self, word, stream):
        """Axis i is the one that lies as number permutation[i]. arrow-rs writes the word
        in the plural."""
        t = self.taken({"shape": [2, 3, 4], word: [2, 0, 1]}, stream=stream)
        assert (t.shape, t.strides) == ((2, 4, 2, 3), (24, 1, 12, 4))
        assert t.read_only
        assert np.shares_memory(t.numpy(), self.FIFTY)
        assert (t.numpy() == self.PHYSICAL.transpose(0, 3, 1, 2)).all()

    def test_tensors_in_chunks_have_their_permutation(self):
        said = tensor_type({"shape": [2, 3, 4], "permutation": [1, 2, 0]})
        t = dlw.from_arrow(Forged(said, self.TWO, self.TWO, stream=True))
        both = np.concatenate([self.PHYSICAL] * 2).transpose(0, 2, 3, 1)
        assert (t.numpy() == both).all()
        back = dlw.from_arrow(dlw.to_arrow(t))
        assert (back.numpy() == both).all()

    def test_tensors_in_other_types(self):
        """A column of a table, of lists, of bits, with nulls, with nothing in it."""
        said = tensor_type({"shape": [2, 3, 4], "permutation": [2, 1, 0]})
        logical = self.PHYSICAL.transpose(0, 3, 2, 1)
        table = {"length": 2, "buffers": [None], "children": [self.TWO]}
        t = dlw.from_arrow(Forged((b"+s", [(b"x", said)]), table), column="x")
        assert (t.numpy() == logical).all()
        lists = {"length": 1, "buffers": [None], "children": [self.TWO]}
        t = dlw.from_arrow(Forged((b"+w:2", [(b"item", said)]), lists))
        assert (t.numpy() == logical[None]).all()
        nulls = {**self.TWO, "buffers": [bitmap([1, 0])]}
        t, valid = dlw.from_arrow(Forged(said, nulls), nulls="mask")
        assert (t.numpy() == logical).all()
        assert valid.numpy().tolist() == [True, False]
        nothing = {"length": 0, "buffers": [None], "children": [plain(SIX[:0])]}
        assert dlw.from_arrow(Forged(said, nothing)).shape == (0, 4, 3, 2)
        bits = {"length": 1, "buffers": [None]}
        values = np.arange(6) % 3 == 0
        bits["children"] = [{"length": 6, "buffers": [None, bitmap(values)]}]
        said = tensor_type({"shape": [2, 3], "permutation": [1, 0]}, b"+w:6", b"b")
        t = dlw.from_arrow(Forged(said, bits))
        assert (t.numpy() == values.reshape(1, 2, 3).transpose(0, 2, 1)).all()

    def test_tensors_without_axes_and_with_names(self):
        one = {"length": 6, "buffers": [None], "children": [plain()]}
        said = tensor_type({"shape": [], "dim_names": []}, b"+w:1")
        assert dlw.from_arrow(Forged(said, one)).shape == (6,)
        said = {"shape": [24, 1], "dim_names": ["a", "b"], "permutation": None}
        assert self.taken(said).shape == (2, 24, 1)
        none = {"length": 6, "buffers": [None], "children": [plain(SIX[:0])]}
        said = tensor_type({"shape": [3, 0], "permutation": [1, 0]}, b"+w:0")
        assert dlw.from_arrow(Forged(said, none)).shape == (6, 0, 3)

    @pytest.mark.parametrize(
        ("parameters", "said"),
        [
            (b"", "not an object of JSON: ''"),
            (b"{", "not an object of JSON: '{'"),
            (b"[24]", "not an object of JSON"),
            (b'{"shape":[24]}\xff', "not an object of JSON"),
            (b"[" * 100_000, "is nested"),
            (b'{"a":' + b"[" * 16 + b"]" * 16 + b"}", "is nested"),
            (b'{"a":"\\"","b":' + b"{" * 16, "is nested"),
            (b'{"a":' + b"[" * 15 + b"]" * 15 + b"}", "no shape"),
            (b'{"a":[' + b"[]," * 20 + b"[]]}", "no shape"),
            (b'{"a":"\\"' + b"[{" * 20 + b'"}', "no shape"),
            ({}, "no shape"),
            ({"shape": 24}, "no shape"),
            ({"shape": [24.0]}, "no shape"),
            ({"shape": [-4, -6]}, "no shape"),
            ({"shape": [True, 24]}, "no shape"),
            ({"shape": [2**64, 24]}, "no shape"),
            ({"shape": [1] * 63 + [24]}, "too many axes.*at most 64 dimensions"),
            ({"shape": [2, 3]}, "another size"),
            ({"shape": [2, 24]}, "another size"),
            ({"shape": [8, 2**61 + 3]}, "another size"),  # 24, in 64 bits
            ({"shape": [2**40, 2**40, 24]}, "another size"),
            ({"shape": []}, "another size"),
            ({"shape": [4, 6], "permutation": [0]}, "permutation"),
            ({"shape": [4, 6], "permutation": [0, 0]}, "permutation"),
            ({"shape": [4, 6], "permutation": [1, 2]}, "permutation"),
            ({"shape": [4, 6], "permutation": [1, 0, 0]}, "permutation"),
            ({"shape": [4, 6], "permutation": [1, -1]}, "permutation"),
            ({"shape": [4, 6], "permutation": [0, 2**63]}, "permutation"),
            ({"shape": [4, 6], "permutation": "10"}, "permutation"),
            ({"shape": [4, 6], "permutation": [0, 65]}, "permutation"),
            ({"shape": [4, 6], "dim_names": ["a"]}, "dim_names"),
            ({"shape": [4, 6], "dim_names": ["a", 3]}, "dim_names"),
            ({"shape": [4, 6], "dim_names": "ab"}, "dim_names"),
        ],
    )
    def test_tensors_whose_metadata_is_malformed(self, parameters, said):
        producer = Forged(tensor_type(parameters), self.TWO)
        with pytest.raises(BufferError, match=said):
            dlw.from_arrow(producer)
        assert producer.released == {"schema": 2, "array": 2, "stream": 0}

    @pytest.mark.parametrize(
        "axes",
        [
            ((5, 5), (0, 1)),
            ((-4, -6), (0, 1)),
            ((1 << 62, 1 << 62, 24), (0, 1, 2)),
            ((4, 6), (0, 0)),
            ((4, 6), (0, 2)),
            ((4, 6), (-1, 0)),
            ((4, 6), (0,)),
            ((1,) * 63, tuple(range(63))),
        ],
    )
    def test_axes_that_cannot_be_address_nothing(self, axes):
        producer = Forged(tensor_type(b'{"shape":[4,6]}'), self.TWO)
        with pytest.raises(SystemError):
            _core._from_arrow_array(
                *producer.__arrow_c_array__(), None, lambda *_: axes
            )

    def test_metadata_that_cannot_be(self):
        tensor = extension(b"arrow.fixed_shape_tensor", b'{"shape":[6]}')
        with pytest.raises(BufferError, match="of no list"):
            dlw.from_arrow(Forged((b"i", [], tensor), plain()))
        for storage in (b"i", b"C"):
            forged = Forged((storage, [], extension(b"arrow.bool8")), plain())
            with pytest.raises(BufferError, match="not of int8"):
                dlw.from_arrow(forged)
        nameless = metadata(ARROW__extension__name=b"arrow.fixed_shape_tensor")
        with pytest.raises(BufferError, match="not an object of JSON: ''"):
            dlw.from_arrow(Forged((b"+w:24", [(b"x", b"i")], nameless), self.TWO))
        for lie in (b"\xff" * 4, metadata(a=b"b")[:4] + b"\xff" * 4):
            with pytest.raises(BufferError, match="metadata of"):
                dlw.from_arrow(Forged((b"i", [], lie), plain()))

    @pytest.mark.parametrize(
        "said",
        [
            metadata(),
            metadata(a=b"b", ARROW__extension=b"arrow.bool8"),
            extension(b"arrow.bool", b"8"),
            extension(b"arrow.bool8x"),
            extension(b"somebody.else's"),
        ],
    )
    def test_what_we_do_not_know_is_its_storage(self, said):
        bytes_ = np.array([0, 1, -2], "i1")
        t = dlw.from_arrow(Forged((b"c", [], said), plain(bytes_)))
        assert (t.dtype, t.numpy().tolist()) == ("int8", [0, 1, -2])

    @pytest.mark.parametrize("stream", [False, True])
    def test_bytes_that_are_bools(self, stream):
        """Any byte that is not 0 means true. Those that NumPy understands are shared."""
        type_ = (b"c", [], extension(b"arrow.bool8"))
        values = np.array([1, 0, 0, 1, 1, 0], "i1")
        cut = {**plain(values), "length": 4, "offset": 2}
        t = dlw.from_arrow(Forged(type_, cut, stream=stream))
        assert (t.dtype, t.shape) == ("bool", (4,))
        assert t.numpy().tolist() == [False, True, True, False]
        assert np.shares_memory(t.numpy(), values)
        values[3] = 2
        assert dlw.from_arrow(Forged(type_, cut)).numpy().view("u1").max() == 1
        values[3:5] = 2, -128
        producer = Forged(type_, cut, stream=stream)
        with dlw.from_arrow(producer) as t:
            assert producer.released["array"] == 1  # copied
            assert t.numpy().view("u1").tolist() == [0, 1, 1, 0]
        assert values.tolist() == [1, 0, 0, 2, -128, 0]
        values[0] = 77  # outside
        cut["buffers"] = [bitmap([1, 1, 1, 0, 1, 1]), values]
        pair = dlw.from_arrow(Forged(type_, cut, stream=stream), nulls="mask")
        assert pair.valid.numpy().tolist() == [True, False, True, True]
        assert dlw.from_arrow(Forged(type_, plain(values[:0]))).shape == (0,)

    def test_bytes_that_are_bools_in_lists(self):
        type_ = (b"+w:3", [(b"item", (b"c", [], extension(b"arrow.bool8")))])
        values = np.array([1, 0, 5, 1, 1, 0], "i1")
        lists = {"length": 2, "buffers": [None], "children": [plain(values)]}
        t = dlw.from_arrow(Forged(type_, lists))
        assert t.numpy().tolist() == [[True, False, True], [True, True, False]]


@pytest.mark.parametrize("make", [lambda t: t, dlw.to_arrow], ids=["t", "to_arrow"])
@pytest.mark.parametrize("type_", [None, "a type"])
def test_pyarrow_gets_the_capsules_by_its_own_protocol(monkeypatch, make, type_):
    """Of objects that lack it, pyarrow ignores `mask` and `size`."""

    def array(x, type):
        assert not hasattr(x, "__arrow_array__")
        return [each is not None for each in x.__arrow_c_array__()], type

    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(array=array))
    with dlw.empty(3) as t:
        found = make(t).__arrow_array__(type=type_)
        assert found == ([True, True], type_)


class Both:
    """Has chunks: `__arrow_c_array__` takes one alone."""

    def __init__(self, raised):
        self.raised, self.asked = raised, []

    def __arrow_c_array__(self, requested_schema=None):
        self.asked.append("array")
        raise self.raised

    def __arrow_c_stream__(self, requested_schema=None):
        self.asked.append("stream")
        return Forged(b"i", plain(), plain(), stream=True).__arrow_c_stream__()


class TestBothWays:
    @pytest.mark.parametrize(
        "raised", [ValueError, TypeError, BufferError, NotImplementedError]
    )
    def test_what_is_no_array_is_a_stream(self, raised):
        both = Both(raised("2 chunks"))
        t = dlw.from_arrow(both)
        assert t.numpy().tolist() == [*SIX, *SIX]
        assert both.asked == ["array", "stream"]

    @pytest.mark.parametrize(
        "raised",
        [KeyboardInterrupt, MemoryError, ZeroDivisionError, SystemExit, GeneratorExit],
    )
    def test_what_is_no_refusal_comes_through(self, raised):
        both = Both(raised())
        with pytest.raises(raised):
            dlw.from_arrow(both)
        assert both.asked == ["array"]

    def test_without_a_stream_the_refusal_is_the_producers(self):
        class One:
            def __arrow_c_array__(self, requested_schema=None):
                raise ValueError("2 chunks")

        with pytest.raises(ValueError, match="2 chunks"):
            dlw.from_arrow(One())

    def test_an_array_is_not_asked_for_its_stream(self):
        """Where the array came, but cannot be shared."""
        both = Both(None)
        both.__arrow_c_array__ = Forged(b"u", plain())._give
        with pytest.raises(BufferError, match="string"):
            dlw.from_arrow(both)
        assert both.asked == []


class TestLies:
    """Structs that cannot be: nothing is taken, nothing is read outside."""

    @pytest.mark.parametrize(
        ("said", "changed"),
        [
            ("negative length or offset", {"length": -1}),
            ("negative length or offset", {"length": 0, "offset": -1}),
            ("negative length or offset, or one beyond", {"offset": 2**63 - 3}),
            ("one beyond", {"length": 2**62, "offset": 2**62}),
            ("address space", {"length": 2**62}),
            ("nulls that cannot be", {"null_count": -2}),
            ("nulls that cannot be", {"null_count": 7}),
            ("nulls that cannot be", {"null_count": 2**40}),
            ("without saying which", {"null_count": 3}),  # there is no bitmap
            ("buffers", {"n_buffers": 1}),
            ("buffers", {"n_buffers": 3}),
        ],
        ids=str,
    )
    def test_numbers(self, said, changed):
        producer = Forged(b"i", {**plain(), **changed})
        with pytest.raises(BufferError, match=said):
            dlw.from_arrow(producer)
        assert producer.released == {"schema": 1, "array": 1, "stream": 0}

    @pytest.mark.parametrize(
        "lie",
        [
            lambda s, a: setattr(a, "release", type(a.release)()),
            lambda s, a: setattr(s, "release", type(s.release)()),
            lambda s, a: setattr(s, "format", None),
            lambda s, a: setattr(s, "n_children", -1),
            lambda s, a: setattr(a, "buffers", type(a.buffers)()),
            lambda s, a: setattr(a, "dictionary", ctypes.pointer(Array())),
            lambda s, a: a.buffers.__setitem__(1, None),
            lambda s, a: a.buffers.__setitem__(1, a.buffers[1] + 2),  # misaligned
        ],
    )
    def test_pointers(self, lie):
        producer = Forged(b"i", plain())
        lie(producer.schema, producer.arrays[0])
        with pytest.raises(BufferError):
            dlw.from_arrow(producer)

    @pytest.mark.parametrize(
        "lie",
        [
            lambda s, a: setattr(s, "children", type(s.children)()),
            lambda s, a: setattr(s, "n_children", 0),
            lambda s, a: setattr(a, "children", type(a.children)()),
            lambda s, a: setattr(a, "n_children", 0),
            lambda s, a: setattr(a, "length", 4),  # more lists than elements
            lambda s, a: setattr(a, "offset", 1),
            lambda s, a: setattr(a.children[0].contents, "length", 5),
            lambda s, a: setattr(a.children[0].contents, "offset", -1),
            lambda s, a: s.children.__setitem__(0, type(s.children[0])()),
            lambda s, a: a.children.__setitem__(0, type(a.children[0])()),
            lambda s, a: setattr(
                a.children[0].contents,
                "release",
                type(a.release)(),
            ),
        ],
    )
    def test_children(self, lie):
        lists = (b"+w:2", [(b"item", b"i")])
        array = {"length": 3, "buffers": [None], "children": [plain()]}
        producer = Forged(lists, array)
        lie(producer.schema, producer.arrays[0])
        with pytest.raises(BufferError):
            dlw.from_arrow(producer)

    @pytest.mark.parametrize("far", [2**20, 2**40])
    def test_children_that_are_too_short_for_their_parents(self, far):
        """That is found before a bitmap is looked into, which is as short."""
        bits = bitmap([1, 0] * 4)
        item = {"length": 6, "buffers": [bits, SIX]}
        short = {"length": far, "buffers": [bits], "children": [item]}
        with pytest.raises(BufferError, match="too few elements"):
            dlw.from_arrow(Forged((b"+w:2", [(b"item", b"i")]), short))
        with pytest.raises(BufferError, match="too few elements"):
            dlw.from_arrow(Forged((b"+s", [(b"item", b"i")]), short))
        lists = {"length": far, "buffers": [bits], "children": [short]}
        within = (b"+w:1", [(b"item", (b"+w:2", [(b"item", b"i")]))])
        with pytest.raises(BufferError, match="too few elements"):
            dlw.from_arrow(Forged(within, lists))

    def test_lists_of_more_than_there_can_be(self):
        type_, array = b"c", plain(SIX.view("i1"))
        for _ in range(3):
            type_ = (b"+w:2147483647", [(b"item", type_)])
            array = {"length": 2**31, "buffers": [None], "children": [array]}
        with pytest.raises(BufferError, match=r"too few|memory can hold"):
            dlw.from_arrow(Forged(type_, array))


class TestStreams:
    def test_one_chunk_is_not_copied(self):
        producer = Forged(b"i", plain(SIX[:0]), plain(), stream=True)
        with dlw.from_arrow(producer) as t:
            assert np.shares_memory(t.numpy(), SIX)
            assert producer.released == {"schema": 1, "array": 1, "stream": 1}
        gc.collect()
        assert producer.released == {"schema": 1, "array": 2, "stream": 1}

    def test_several_are_joined(self):
        some = {"length": 3, "offset": 1, "buffers": [bitmap([1, 0, 1], 1), SIX]}
        producer = Forged(b"i", plain(), some, plain(SIX[4:]), stream=True)
        t, valid = dlw.from_arrow(producer, nulls="mask")
        assert t.numpy().tolist() == [*range(6), 1, 2, 3, 4, 5]
        assert valid.numpy().tolist() == [True] * 7 + [False] + [True] * 3
        assert producer.released == {"schema": 1, "array": 3, "stream": 1}
        assert not t.read_only

    def test_chunks_of_a_byte_are_joined(self):
        chunks = [plain(np.array(part, "u1")) for part in ([7], [1, 2], [3])]
        t = dlw.from_arrow(Forged(b"C", *chunks, stream=True))
        assert t.numpy().tolist() == [7, 1, 2, 3]

    def test_none(self):
        lists = (b"+w:2", [(b"item", b"b")])
        producer = Forged(lists, stream=True)
        t = dlw.from_arrow(producer)
        assert (t.shape, t.dtype) == ((0, 2), "bool")
        assert producer.released == {"schema": 2, "array": 0, "stream": 1}

    def test_tables(self):
        chunk = {"length": 6, "buffers": [None], "children": [plain(), plain(-SIX)]}
        table = (b"+s", [(b"a", b"i"), (b"b", b"i")])
        producer = Forged(table, chunk, chunk, stream=True)
        t = dlw.from_arrow(producer, column="b")
        assert t.numpy().tolist() == [*-SIX, *-SIX]
        assert producer.released["array"] == 2 * 3

    def test_a_chunk_that_lies(self):
        lie = {**plain(), "length": -1}
        producer = Forged(b"i", plain(), lie, plain(), stream=True)
        with pytest.raises(BufferError, match="length"):
            dlw.from_arrow(producer)
        assert producer.released == {"schema": 1, "array": 2, "stream": 1}

    @pytest.mark.parametrize("text", [b"the disk is gone", None])
    @pytest.mark.parametrize("when", ["get_schema", "get_next"])
    def test_errors(self, when, text):
        producer = Forged(b"i", plain(), stream=True)
        fail = type(getattr(producer.stream, when))(lambda *_: 5)
        said = ctypes.c_char_p(text)
        address = ctypes.cast(said, ctypes.c_void_p).value
        last = type(producer.stream.get_last_error)(lambda _: address)
        setattr(producer.stream, when, fail)
        producer.stream.get_last_error = last
        with pytest.raises(BufferError, match=r"\(5\): (the disk is gone|it does not)"):
            dlw.from_arrow(producer)
        assert producer.released["stream"] == 1

    def test_one_that_was_released(self):
        producer = Forged(b"i", plain(), stream=True)
        producer.stream.release = type(producer.stream.release)()
        with pytest.raises(BufferError, match="released"):
            dlw.from_arrow(producer)


class TestExport:
    @pytest.mark.parametrize("name", [*LETTERS, "bool"])
    @pytest.mark.parametrize("shape", [(5,), (0,), (3, 2), (2, 3, 4), (0, 3), (3, 0)])
    def test_every_type(self, name, shape):
        size = int(np.prod(shape))
        values = (np.arange(size) % 5).astype(name).reshape(shape)
        capsules = dlw.from_dlpack(values).__arrow_c_array__()
        schema, array = (
            inside(*each) for each in zip(capsules, (Schema, Array), strict=True)
        )
        letter = "b" if name == "bool" else LETTERS[name].decode()
        assert read_type(schema) == [*(f"+w:{n}" for n in shape[1:]), letter]
        found, valid = read_array(array, np.dtype(name))
        assert valid is None
        assert found.ravel().tolist() == values.ravel().tolist()
        assert (array.null_count, array.offset, array.length) == (0, 0, shape[0])

    def test_memory_is_shared(self):
        values = np.arange(5)
        t = dlw.from_dlpack(values)
        capsules = t.__arrow_c_array__()
        assert inside(capsules[1], Array).buffers[1] == values.ctypes.data

    def test_strides_are_packed(self):
        values = np.arange(24).reshape(4, 6)[::-1, ::2]
        capsules = dlw.from_dlpack(values).__arrow_c_array__()
        found, _ = read_array(inside(capsules[1], Array), values.dtype)
        assert found.tolist() == values.tolist()

    def test_a_child_may_be_moved_out(self):
        """It outlives its list, and both are released once."""
        values = np.arange(6.0).reshape(2, 3)
        capsules = dlw.from_dlpack(values).__arrow_c_array__()
        outer = inside(capsules[1], Array)
        child = Array()
        ctypes.pointer(child)[0] = outer.children[0].contents
        outer.children[0].contents.release = type(outer.release)()
        live = dlw.live_tensors()
        del capsules, outer
        gc.collect()
        assert dlw.live_tensors() == live
        assert read_array(child, np.dtype(float))[0].tolist() == [0, 1, 2, 3, 4, 5]
        child.release(ctypes.pointer(child))
        assert dlw.live_tensors() == live - 1
        assert not child.release

    def test_what_is_not_valid_is_null(self):
        array = {"length": 6, "buffers": [bitmap([1, 0, 1, 1, 0, 1]), SIX]}
        pair = dlw.from_arrow(Forged(b"i", array), nulls="mask")
        capsules = dlw.to_arrow(*pair).__arrow_c_array__()
        found, valid = read_array(inside(capsules[1], Array), SIX.dtype)
        assert valid.tolist() == [1, 0, 1, 1, 0, 1]
        assert inside(capsules[1], Array).null_count == 2
        again = dlw.from_arrow(dlw.to_arrow(*pair), nulls="mask")
        assert (again.valid.numpy() == pair.valid.numpy()).all()
        assert found.tolist() == again.values.numpy().tolist() == SIX.tolist()
        alone = pair.values.__arrow_c_array__()
        assert read_array(inside(alone[1], Array), SIX.dtype)[1] is None

    @pytest.mark.parametrize("step", [1, -2, 3])
    def test_valid_is_a_tensor_or_an_array_of_any_strides(self, step):
        valid = (np.arange(18) % 4 > 0)[:: 3 * (step > 0) or -3]
        assert valid.size == 6
        for given in (valid, dlw.from_dlpack(valid), memoryview(valid.copy())):
            array = dlw.to_arrow(dlw.from_dlpack(SIX), given).__arrow_c_array__()[1]
            found = read_array(inside(array, Array), SIX.dtype)[1]
            assert found.tolist() == valid.tolist()

    def test_a_tensor_has_no_validity(self):
        with dlw.from_arrow(Forged(b"i", plain())) as t:
            said = "has no attribute 'validity': .*nulls='mask'"
            with pytest.raises(AttributeError, match=said):
                t.validity  # noqa: B018
            with pytest.raises(AttributeError):
                t._validity = t

    def test_without_nulls_all_are_valid(self):
        for array in (plain(), plain(SIX[:0]), plain(null_count=0)):
            for stream in (False, True):
                forged = Forged(b"i", array, stream=stream)
                pair = dlw.from_arrow(forged, nulls="mask")
                assert isinstance(pair, dlw.Masked)
                assert pair._fields == ("values", "valid")
                assert pair.valid.dtype == "bool"
                assert pair.valid.numpy().tolist() == [True] * array["length"]
        lists = {"length": 3, "buffers": [None], "children": [plain()]}
        forged = Forged((b"+w:2", [(b"item", b"i")]), lists)
        values, valid = dlw.from_arrow(forged, nulls="mask")
        assert (values.shape, valid.shape) == ((3, 2), (3,))
        assert values.numpy().tolist() == SIX.reshape(3, 2).tolist()

    @pytest.mark.skipif(np.intp().itemsize == 4, reason="no array is as large there")
    def test_lists_have_fewer_than_2_to_31_elements(self):
        row = np.broadcast_to(np.zeros(1, np.uint8), (1, 2**31))
        with (
            dlw.from_dlpack(row) as t,
            pytest.raises(BufferError, match="axis 1 has 2147483648 elements; Arrow's"),
        ):
            dlw.to_arrow(t)

    @pytest.mark.parametrize(
        "given",
        [
            pytest.param(np.ones(5, bool), id="shorter"),
            pytest.param(np.ones(7, bool), id="longer"),
            pytest.param(np.ones((6, 1), bool), id="of two axes"),
            pytest.param(np.ones((), bool), id="of no axes"),
            pytest.param(np.ones(6, np.uint8), id="of bytes"),
            pytest.param("boolx2", id="of lanes"),
            pytest.param(
                forge.Forged(
                    device_type=15,
                    data=7,
                    code=6,
                    bits=8,
                    ndim=1,
                    shape=(6,),
                    strides=(1,),
                ),
                id="on a GPU",
            ),
        ],
    )
    def test_valid_is_a_bool_for_each_row(self, given):
        said = (
            "valid must be a Tensor of bool on the CPU, with one for each of the 6 ele"
        )
        if isinstance(given, str):
            given = dlw.empty(6, given)
        with dlw.from_dlpack(SIX) as t, pytest.raises(BufferError, match=said):
            dlw.to_arrow(t, given)

    def test_to_arrow_takes_the_two_apart(self):
        pair = dlw.from_arrow(Forged(b"i", plain()), nulls="mask")
        with pytest.raises(TypeError, match=r"use to_arrow\(\*x\)"):
            dlw.to_arrow(pair)
        with pytest.raises(TypeError, match="cannot share a list"):
            dlw.to_arrow(pair.values, [True] * 6)
        made = dlw.to_arrow(*pair)
        pair.valid.release()
        with pytest.raises(dlw.ReleasedError):
            made.__arrow_c_array__()

    @pytest.mark.parametrize(
        ("type_", "given"),
        [
            (b"i", SIX),
            (b"b", SIX > 2),
            ((b"+w:2", [(b"any name", b"i")]), SIX.reshape(3, 2)),
            ((b"i", [], metadata(a=b"b")), SIX),
        ],
        ids=str,
    )
    def test_requests_for_the_type_that_it_has(self, type_, given):
        asked = Forged(type_)
        with dlw.from_dlpack(given) as t:
            for each in (t, dlw.to_arrow(t)):
                schema, _ = each.__arrow_c_array__(capsule(asked.schema))
                letters = type_[0] if isinstance(type_, tuple) else type_
                assert inside(schema, Schema).format == letters
        assert asked.released["schema"] == 0  # it stays its owner's

    @pytest.mark.parametrize(
        ("type_", "said"),
        [
            (b"l", "type 'l', the Tensor is '.w:2' of 'i'"),
            (b"i", "type 'i'"),
            ((b"+w:3", [(b"x", b"i")]), "'.w:3' of 'i', the Tensor is '.w:2' of 'i'"),
            ((b"+w:2", [(b"x", b"I")]), "'.w:2' of 'I', the Tensor"),
            ((b"+w:2", []), "type '.w:2', the Tensor"),
            ((b"+w:2", [(b"x", b"i"), (b"y", b"i")]), "type '.w:2', the Tensor"),
            (tensor_type({"shape": [2]}, b"+w:2"), "'i' with an extension, the"),
        ],
        ids=str,
    )
    def test_requests_for_another_type_are_refused(self, type_, said):
        asked = Forged(type_)
        with (
            dlw.from_dlpack(SIX.reshape(3, 2)) as t,
            pytest.raises(BufferError, match=said),
        ):
            t.__arrow_c_array__(requested_schema=capsule(asked.schema))
        assert asked.released["schema"] == 0

    def test_requests_that_are_none(self):
        t = dlw.from_dlpack(SIX)
        for wrong in (3, "i", Forged(b"i", plain())._give()[1]):
            with pytest.raises(TypeError, match="requested_schema must be None"):
                t.__arrow_c_array__(wrong)
        asked = Forged(b"l")
        asked.schema.n_children = 1
        asked.schema.children = type(asked.schema.children)()
        with pytest.raises(BufferError, match="children are not there"):
            t.__arrow_c_array__(capsule(asked.schema))
        asked = Forged(b"i")
        asked.schema.release = type(asked.schema.release)()
        with pytest.raises(BufferError, match="released"):
            t.__arrow_c_array__(capsule(asked.schema))

    @pytest.mark.parametrize(
        ("name", "shape", "said"),
        [
            ("bfloat16", (3,), "no type for bfloat16"),
            (
                "complex64",
                (3,),
                "Arrow has no type for complex64: integers and floats of 8",
            ),
            ("uint4", (4,), "no type for uint4"),
            ("float32x4", (4,), "no type for float32x4"),
            ("float32", (), "reshape"),
        ],
    )
    def test_what_arrow_lacks(self, name, shape, said):
        with pytest.raises(BufferError, match=said):
            dlw.to_arrow(dlw.empty(shape, name))

    def test_released_and_other_things(self):
        t = dlw.empty(3)
        t.release()
        with pytest.raises(dlw.ReleasedError):
            dlw.to_arrow(t)
        words = r"make one with from_dlpack\(\) or from_buffer\(\)$"
        for wrong, what in ((SIX, "an ndarray"), ([1, 2], "a list")):
            said = f"^to_arrow takes a Tensor, not {what}: {words}"
            with pytest.raises(TypeError, match=said):
                dlw.to_arrow(wrong)


def test_random_arrays_come_back():
    """Made, taken, given and taken again: the same elements, and nulls in the same
    places."""
    rng = random.Random(7)
    for _ in range(300):
        dtype = rng.choice([*LETTERS, "bool"])
        shape = [
            rng.randrange(20),
            *(rng.randrange(4) for _ in range(rng.randrange(3))),
        ]
        offsets = [rng.randrange(10) for _ in shape]
        type_ = b"b" if dtype == "bool" else LETTERS[dtype]
        # From the innermost level out: elements that there are, with those before them.
        counts = [shape[0]]
        starts = [offsets[0]]
        for width, offset in zip(shape[1:], offsets[1:], strict=True):
            counts.append((starts[-1] + counts[-1]) * width)
            starts.append(offset)
        total = starts[-1] + counts[-1]
        raw = np.array([rng.randrange(2) for _ in range(total)]).astype(dtype)
        used = raw[starts[-1] :]
        for i in range(len(shape) - 1, 0, -1):
            used = used.reshape(starts[i - 1] + counts[i - 1], *shape[i:])[
                starts[i - 1] :
            ]
        data = bitmap(raw) if dtype == "bool" else raw
        array = {"length": counts[-1], "offset": starts[-1], "buffers": [None, data]}
        for width, count, start in list(zip(shape[1:], counts, starts, strict=False))[
            ::-1
        ]:
            type_ = (b"+w:%d" % width, [(b"item", type_)])
            array = {
                "length": count,
                "offset": start,
                "buffers": [None],
                "children": [array],
            }
        valid = [rng.random() < 0.8 for _ in range(shape[0])]
        has_nulls = rng.random() < 0.5
        if has_nulls:
            array["buffers"][0] = bitmap(valid, offsets[0])
        array["null_count"] = rng.choice([-1, 1, shape[0]]) if has_nulls else 0
        array["null_count"] = min(array["null_count"], shape[0])
        wanted = valid if has_nulls and array["null_count"] else [True] * shape[0]
        forged = Forged(type_, array, stream=rng.random() < 0.3)
        if not all(wanted):
            with pytest.raises(
                BufferError, match=f"^{wanted.count(False)} of {shape[0]} "
            ):
                dlw.from_arrow(Forged(type_, array, stream=rng.random() < 0.3))
        t = dlw.from_arrow(forged, nulls="mask")
        for pair in (t, dlw.from_arrow(dlw.to_arrow(*t), nulls="mask")):
            assert pair.values.shape == tuple(shape)
            assert pair.values.numpy().ravel().tolist() == used.ravel().tolist()
            assert pair.valid.numpy().tolist() == wanted


class TestEnds:
    def test_dropped_capsules_leave_a_pending_exception_alone(self):
        tensor = dlw.from_dlpack(SIX)
        with pytest.raises(ZeroDivisionError):
            print(tensor.__arrow_c_array__(), 1 // 0)
        tensor.release()

    def test_tensors_on_a_gpu_are_no_arrow_arrays(self):
        on_gpu = forge.Forged(device_type=15, data=7)
        with (
            dlw.from_dlpack(on_gpu) as tensor,
            pytest.raises(
                BufferError,
                match=r"on WebGPU, .* use what `await t\.to_host\(\)` gives$",
            ),
        ):
            tensor.__arrow_c_array__()

    def test_the_type_of_a_list_releases_that_of_its_elements(self):
        """Once, unless somebody has taken it."""
        with dlw.empty((2, 3, 4)) as tensor:
            for taken in (False, True):
                capsule, _array = tensor.__arrow_c_array__()
                schema = inside(capsule, Schema)
                child, released = schema.children[0].contents, []
                own = RELEASE_SCHEMA(ctypes.cast(child.release, ctypes.c_void_p).value)

                def note(at, own=own, released=released):
                    released.append(at.contents.format)
                    own(at)

                child.release = kept = RELEASE_SCHEMA(note)
                if taken:
                    child.release(child)
                assert len(released) == taken
                del capsule, schema
                gc.collect()
                assert released == [b"+w:4"]
                del kept

    def test_tensors_have_the_one_cpu(self):
        with dlw.from_arrow(Forged(b"i", plain())) as tensor:
            assert tensor.device == dlw.Device(dlw.DLDeviceType.kDLCPU, 0)
