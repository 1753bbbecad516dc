"""Arrow's types as axes: how many there may be, which child is meant, and what their
letters and names say."""

import gc
import json
import random

import numpy as np
import pytest
from arrow_forge import RELEASE_SCHEMA, Forged, bitmap, extension

import dlpack_web as dlw

MOST = 63  # levels, and axes: the rows are the 64th


@pytest.fixture(autouse=True)
def producers():
    yield
    gc.collect()  # whoever took an array has released it
    Forged.alive.clear()


def tensor_of(shape, permutation):
    """The metadata of an arrow.fixed_shape_tensor."""
    said = {"shape": shape}
    if permutation is not None:
        said["permutation"] = permutation
    return extension(b"arrow.fixed_shape_tensor", json.dumps(said).encode())


def nested(levels, leaf, rows, values, leaf_width=1):
    """(type, array) of lists: each level is a width, or (shape, permutation). leaf: letters,
    of which `leaf_width` bytes or elements make one."""
    counts = [rows]
    for level in levels:
        width = level if isinstance(level, int) else int(np.prod(level[0], dtype=int))
        counts.append(counts[-1] * width)
    type_ = leaf
    array = {"length": counts[-1], "buffers": [None, values]}
    for level, count in zip(levels[::-1], counts[-2::-1], strict=True):
        array = {"length": count, "buffers": [None], "children": [array]}
        if isinstance(level, int):
            type_ = (b"+w:%d" % level, [(b"item", type_)])
        else:
            width = int(np.prod(level[0], dtype=int))
            type_ = (b"+w:%d" % width, [(b"item", type_)], tensor_of(*level))
    return type_, array


def test_at_most_63_levels_and_63_axes():
    """Lists, tensors of no, one and several axes, and binary within them."""
    rng = random.Random(63)
    seen = {True: 0, False: 0}
    value = np.full(1, 9, "u1")
    for _ in range(150):
        levels, axes = [], rng.choice([61, 62, 63, 63, 64, 65, 70])
        binary = rng.random() < 0.3
        left = axes - binary
        while left > 0:
            taken = min(left, rng.choice([0, 1, 1, 1, 2, 5, 40]))
            plain = taken == 1 and rng.random() < 0.8
            levels.append(1 if plain else ([1] * taken, None))
            left -= taken
        while len(levels) < 80 and rng.random() < 0.5:
            levels.insert(rng.randrange(len(levels) + 1), ([], None))
        leaf = b"w:1" if binary else b"C"
        forged = Forged(*nested(levels, leaf, 1, value))
        fits = axes <= MOST and len(levels) <= MOST
        seen[fits] += 1
        if fits:
            with dlw.from_arrow(forged) as t:
                assert t.shape == (1,) * (axes + 1)
                assert t.tobytes() == b"\x09"
        else:
            with pytest.raises(BufferError, match="at most 64 dimensions"):
                dlw.from_arrow(forged)
        assert forged.released["schema"] == len(levels) + 1
    assert min(seen.values()) > 30


@pytest.mark.parametrize(
    ("levels", "leaf", "said"),
    [
        ([1] * 64, b"C", "nested more than 63 levels deep"),
        ([([], None)] * 64, b"C", "nested more than 63 levels deep"),
        ([1] * 63, b"w:1", "more than 63 axes together"),
        ([([1] * 64, None)], b"C", "too many axes"),
        ([1, ([1] * 63, None)], b"C", "too many axes"),
        ([([1] * 63, None), 1], b"C", "more than 63 axes together"),
        ([([1] * 63, None)], b"w:1", "more than 63 axes together"),
        ([1] * 63 + [([1], None)], b"C", "nested more than 63 levels deep"),
        ([1] * 62 + [([1, 1], None)], b"C", "too many axes"),
    ],
    ids=lambda x: f"{len(x)}" if isinstance(x, list) else None,
)
def test_what_is_too_deep_is_named(levels, leaf, said):
    one = np.full(1, 9, "u1")
    with pytest.raises(BufferError, match=f"{said}.*at most 64 dimensions"):
        dlw.from_arrow(Forged(*nested(levels, leaf, 1, one)))
    if leaf == b"w:1":  # one axis fewer
        leaf = b"C"
    elif isinstance(levels[-1], tuple) and levels[-1][0]:
        levels = [*levels[:-1], (levels[-1][0][1:], None)][-MOST:]
    else:
        levels = levels[:-1]
    with dlw.from_arrow(Forged(*nested(levels, leaf, 1, one))) as t:
        assert t.ndim <= 64


def test_63_levels_may_hold_binary():
    """Which is an axis, and no level."""
    type_, array = nested([([], None)] * 63, b"w:1", 1, np.full(1, 9, "u1"))
    with dlw.from_arrow(Forged(type_, array)) as t:
        assert (t.shape, t.tobytes()) == ((1, 1), b"\x09")


def test_axes_are_those_of_memory_and_then_permuted():
    """Each level has its own permutation, of its own axes."""
    rng = random.Random(7)
    for _ in range(200):
        rows, shape, order, levels = rng.randrange(4), [], [], []
        for _ in range(rng.randrange(1, 5)):
            if rng.random() < 0.4:
                extents = [rng.randrange(1, 4)]
                levels.append(extents[0])
                axes = [0]
            else:
                extents = [rng.randrange(1, 4) for _ in range(rng.randrange(4))]
                axes = rng.sample(range(len(extents)), len(extents))
                given = None if axes == sorted(axes) and rng.random() < 0.5 else axes
                levels.append((extents, given))
            order += [len(shape) + axis for axis in axes]
            shape += extents
        size = rows * int(np.prod(shape, dtype=int))
        values = np.arange(size + 1, dtype="i4")
        wanted = values[:size].reshape(rows, *shape)
        wanted = wanted.transpose(0, *(1 + axis for axis in order))
        stream = rng.random() < 0.3
        type_, array = nested(levels, b"i", rows, values)
        with dlw.from_arrow(Forged(type_, array, stream=stream)) as t:
            assert t.shape == wanted.shape, levels
            assert (t.numpy() == wanted).all()
        valid = [rng.random() < 0.5 for _ in range(rows)]
        array["buffers"] = [bitmap(valid), *array["buffers"][1:]]
        pair = dlw.from_arrow(Forged(type_, array, stream=stream), nulls="mask")
        assert pair.values.shape == wanted.shape
        assert pair.valid.numpy().tolist() == valid


@pytest.mark.parametrize("count", [0, 2, 3])
@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize("kind", ["list", "tensor"])
def test_a_list_has_one_child(count, depth, kind):
    """Whose elements two children would mean is not guessed."""
    said = [tensor_of([2], None)] if kind == "tensor" else []
    values = np.arange(6, dtype="i4")
    items = {"length": 6, "buffers": [None, values]}
    array = {"length": 3, "buffers": [None], "children": [items] * max(count, 1)}
    type_ = (b"+w:2", [(b"item", b"i")] * count, *said)
    for _ in range(depth):
        type_ = (b"+w:1", [(b"item", type_)])
        array = {"length": 3, "buffers": [None], "children": [array]}
    forged = Forged(type_, array)
    with pytest.raises(BufferError, match="a fixed-size list without its child, or wi"):
        dlw.from_arrow(forged)
    assert forged.released["array"] == 1 + depth + max(count, 1)


NUMBERS = {"length": 2, "buffers": [None, np.arange(2, dtype="i4")]}


def rows_of(*names):
    """A struct of columns of those names, each with its number as elements."""
    columns = [
        {"length": 2, "buffers": [None, np.full(2, i, "i4")]} for i in range(len(names))
    ]
    type_ = (b"+s", [(name, b"i") for name in names])
    return type_, {"length": 2, "buffers": [None], "children": columns}


@pytest.mark.parametrize(
    ("names", "column", "found"),
    [
        ((None,), None, 0),
        ((None,), "", 0),
        ((b"a", None), "", 1),
        ((None, b"a"), "a", 1),
        ((None, b"", b"a"), "a", 2),
        ((None, None, b"b"), "b", 2),
        ((b"a", b"ab", b"b"), "ab", 1),
        (("é".encode(), b"e"), "é", 0),
        ((b"a",), None, 0),
    ],
)
def test_columns_may_have_no_name(names, column, found):
    with dlw.from_arrow(Forged(*rows_of(*names)), column=column) as t:
        assert t.numpy().tolist() == [found, found]


@pytest.mark.parametrize(
    ("names", "column", "said"),
    [
        ((None,), "a", "no column named 'a'"),
        ((None, b""), "", "several columns named ''"),
        ((None, None), "", "several columns named ''"),
        ((None, None), None, "several columns: name one"),
        ((), None, "no column to share"),
        ((), "a", "no column named 'a'"),
        ((b"ab",), "a", "no column named 'a'"),
        ((b"a",), "ab", "no column named 'ab'"),
        ((b"x" * 500,), "y" * 500, f"named '{'y' * 80}'$"),
    ],
)
def test_columns_that_are_not_there(names, column, said):
    with pytest.raises(BufferError, match=said):
        dlw.from_arrow(Forged(*rows_of(*names)), column=column)


def orphaned(schema, i):
    """A child whose own children are not there."""
    child = schema.children[i].contents
    child.n_children, child.children = 1, type(child.children)()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    ("lie", "said"),
    [
        (lambda s, i: s.children.__setitem__(i, type(s.children[i])()), "is not there"),
        (
            lambda s, i: setattr(s.children[i].contents, "release", RELEASE_SCHEMA()),
            "was released",
        ),
        (
            lambda s, i: setattr(s.children[i].contents, "format", None),
            "without a form",
        ),
        (
            lambda s, i: setattr(s.children[i].contents, "n_children", -1),
            "fewer than no",
        ),
        (orphaned, "whose children are not there"),
    ],
)
def test_every_column_is_looked_at_before_one_is_chosen(lie, said, which):
    forged = Forged(*rows_of(b"a", b"b"))
    lie(forged.schema, which)
    with pytest.raises(BufferError, match=said):
        dlw.from_arrow(forged, column="b")


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_name_may_be_null_anywhere(depth):
    type_, array = b"i", NUMBERS
    for _ in range(depth):
        type_ = (b"+w:1", [(None, type_)])
        array = {"length": 2, "buffers": [None], "children": [array]}
    forged = Forged(type_, array)
    forged.schema.name = None
    with dlw.from_arrow(forged) as t:
        assert t.shape == (2,) + (1,) * depth


@pytest.mark.parametrize(
    ("letters", "width"),
    [
        (b"+w:0", 0),
        (b"+w:3", 3),
        (b"+w:03", 3),
        (b"+w:10", 10),
        (b"+w:2147483647", 2**31 - 1),
        (b"w:9", 9),
        (b"w:2147483647", 2**31 - 1),
    ],
)
def test_widths(letters, width):
    """Of no elements, any width needs no memory."""
    nothing = {"length": 0, "buffers": [None, None]}
    if letters[:1] == b"+":
        lists = {"length": 0, "buffers": [None], "children": [nothing]}
        forged = Forged((letters, [(b"item", b"C")]), lists)
    else:
        forged = Forged(letters, nothing)
    with dlw.from_arrow(forged) as t:
        assert (t.shape, t.dtype) == ((0, width), "uint8")


@pytest.mark.parametrize(
    "letters",
    [
        b"+w:",
        b"+w:2147483648",
        b"+w:9999999999",
        b"+w:1x",
        b"+w:/",
        b"+w::",
        b"+w:1/",
        b"+w:1:",
        b"w:/1",
        b"w::1",
        b"+w: 1",
        b"w:",
        b"+w:-1",
        b"w:2147483648",
        b"w:99999999999999999999",
        b"w:-1",
        b"w:1,2",
    ],
)
def test_widths_that_are_no_number(letters):
    with pytest.raises(BufferError, match="its length is not a number"):
        dlw.from_arrow(Forged((letters, [(b"item", b"C")]), NUMBERS))
