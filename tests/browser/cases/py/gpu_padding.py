"""What a shader sees of a tensor and behind it, and what it leaves of it and its neighbours:
kernels and batches over random parts of buffers, against a model."""

import random
from contextlib import suppress

import numpy as np
import pytest
from gpu_world import limit, make_buffer, write_buffer

import dlpack_web as dlw

pytestmark = pytest.mark.usefixtures("device", "nothing_leaks")

# Notes the number of elements, and all words, that it sees; then changes all of these.
SEE = """
@group(0) @binding(0) var<storage, ACCESS> x: array<ELEMENT>;
@group(0) @binding(1) var<storage, read_write> seen: array<u32>;
@group(0) @binding(2) var<uniform> k: u32;
@compute @workgroup_size(1) fn main() {
  seen[0] += arrayLength(&x) + 1000 * k;
  for (var i = 0u; i < arrayLength(&x); i++) {
    for (var j = 0u; j < WORDS; j++) { seen[1 + i * WORDS + j] += WORD; }
    CHANGE
  }
}
"""
ELEMENTS = {"u32": (1, "x[i]"), "vec2u": (2, "x[i][j]"), "vec4u": (4, "x[i][j]")}
ELEMENTS["array<u32, 8>"] = (8, "x[i][j]")
ROOM = 64  # words of `seen`
SIZES = (4, 20, 33, 36, 64, 300, 333, 900)


def see(element, access):
    words, word = ELEMENTS[element]
    change = ""
    if access == "read_write":
        change = "for (var j = 0u; j < WORDS; j++) { WORD = ~WORD; }"
    code = SEE.replace("CHANGE", change).replace("ELEMENT", element)
    code = code.replace("WORDS", f"{words}u").replace("WORD", word)
    return dlw.webgpu.Kernel(code.replace("ACCESS", access), label=f"see {element}")


class Part:
    """Bytes of a buffer, and what they are by the model.

    One at the end of a buffer of ours, and at an offset that can be bound, is bound with
    the buffer's padding, which the shader may change; others are bound exactly, or as a
    copy followed by zeros.
    """

    def __init__(self, choose, device):
        count = choose.choice(SIZES)
        self.lent = choose.random() < 0.3
        if self.lent:
            count = count // 4 * 4
        self.start, self.size = self.place(choose, count)
        step = limit(device.gpu, "minStorageBufferOffsetAlignment")
        ends = self.start + self.size == count and self.start % step == 0
        self.padded = not self.lent and ends
        rest = -count % 16 if self.padded else 0
        self.bytes = np.frombuffer(choose.randbytes(count) + bytes(rest), "u1").copy()
        if self.lent:
            buffer = make_buffer(device, count, "STORAGE", "COPY_SRC", "COPY_DST")
            write_buffer(device, buffer, self.bytes.tobytes())
            whole = dlw.from_gpu_buffer(buffer, count, "uint8", device=device)
        else:
            whole = dlw.from_dlpack(self.bytes[:count], device=device)
        self.whole = whole
        rest = count - self.start - self.size
        if self.lent and rest > 16:  # else the rest counts as padding of the part
            options = {"device": device, "byte_offset": self.start}
            self.tensor = dlw.from_gpu_buffer(buffer, self.size, "uint8", **options)
        else:
            self.tensor = whole[self.start : self.start + self.size]

    def place(self, choose, count):
        if count < 60:
            return 0, count
        if choose.random() < 0.3:  # up to the end
            start = 256 if count == 300 else (count - 60) // 4 * 4
            return start, count - start
        start = choose.choice((0, 0, 4, 12, 256, 300, 4 * choose.randrange(60)))
        start = min(start, count // 4 * 4)
        size = choose.choice((0, 1, 3, 4, 7, 16, 20, 33, 48))
        return start, min(size, count - start)

    def shows(self, words):
        """The words that an array of elements of so many words has, by their number."""
        count = max(-(-self.size // (4 * words)), 1)
        shown = np.zeros(count * words * 4, "u1")
        in_place = self.padded and self.start + shown.size <= self.bytes.size
        end = shown.size if in_place else self.size
        shown[:end] = self.bytes[self.start :][:end]
        return count, shown.view("u4")

    def change(self, words):
        _, shown = self.shows(words)
        changed = (~shown).view("u1")
        in_place = self.padded and self.start + changed.size <= self.bytes.size
        # Of a copy all words that have elements come back.
        end = changed.size if in_place else self.size
        end += -end % 4 if self.padded else 0
        self.bytes[self.start : self.start + end] = changed[:end]

    async def agrees(self):
        found = await self.whole.to_host()
        return (found == self.bytes[: found.size]).all()

    def release(self):
        self.tensor.release()
        self.whole.release()


class Call:
    """A kernel over a part, with the words that it has seen by the model."""

    def __init__(self, kernels, kind, part, number, device):
        self.kernel, self.kind = kernels[kind], kind
        self.part, self.number = part, number
        self.seen = dlw.empty(ROOM, "uint32", device=device)
        self.model = np.zeros(ROOM, "u4")

    def run(self):
        """BufferError: the part shares its last word with a neighbour."""
        self.kernel(self.part.tensor, self.seen, self.number, workgroups=1)

    def ran(self):
        words, _ = ELEMENTS[self.kind[0]]
        count, shown = self.part.shows(words)
        self.model[0] += count + 1000 * self.number
        self.model[1 : 1 + shown.size] += shown
        if self.kind[1] == "read_write":
            self.part.change(words)


async def agree(calls, parts, where):
    for call in calls:
        found = await call.seen.to_host()
        assert (found == call.model).all(), (where, call.kind, vars(call.part))
    for part in parts:
        assert await part.agrees(), (where, vars(part))


@pytest.mark.parametrize("seed", range(18))
async def test_what_a_shader_sees_and_leaves(seed, device):
    choose = random.Random(seed)
    kinds = [(each, way) for each in ELEMENTS for way in ("read", "read_write")]
    kernels = {kind: see(*kind) for kind in kinds}
    parts = [Part(choose, device) for _ in range(5)]

    def new(kind, number):
        return Call(kernels, kind, choose.choice(parts), number, device)

    calls = [new(choose.choice(kinds), choose.randrange(9)) for _ in range(8)]
    direct = []
    for call in calls:
        with suppress(BufferError):
            call.run()
            call.ran()
            direct.append(call)
    assert direct
    await agree(calls, parts, "direct")
    if seed % 3 == 0:
        await end(parts, calls, device)
        return
    with dlw.webgpu.batch() as batch:
        for call in direct:
            call.run()
    for turn in range(3):
        batch.run()
        for call in direct:
            call.ran()
        await agree(calls, parts, f"run {turn}")
        at = choose.randrange(len(direct))
        other = new(direct[at].kind, choose.randrange(9))
        changes = {0: other.part.tensor, 1: other.seen, 2: other.number}
        calls.append(other)
        with suppress(BufferError):  # that part shares its last word
            batch.update(at, changes)
            direct[at] = other
        at = choose.randrange(len(direct))
        direct[at].number = choose.randrange(9)
        batch.update(at, {2: direct[at].number})
    batch.release()
    await end(parts, calls, device)


async def end(parts, calls, device):
    for each in parts:
        each.release()
    for call in calls:
        call.seen.release()
    # What was written behind elements is gone from buffers that are used again.
    zeros = [np.zeros(size, "u1") for size in SIZES * 3]
    again = [dlw.empty(each.size, "uint8", device=device) for each in zeros]
    again += [dlw.from_dlpack(each, device=device) for each in zeros]
    kernel = see("vec4u", "read")
    for tensor in again:
        with dlw.empty(ROOM * 4, "uint32", device=device) as seen:
            kernel(tensor, seen, 0, workgroups=1)
            found = await seen.to_host()
        assert found[0] == -(-tensor.size // 16)
        assert not found[1:].any()
        tensor.release()


async def test_views_of_one_buffer_are_bound_each_with_its_size(device):
    """The same kernel, whose bind groups are kept."""
    kernel, values = see("u32", "read"), np.arange(120, dtype="u4")
    with dlw.from_dlpack(values, device=device) as whole:
        for start, size in [(0, 4), (64, 4), (0, 9), (0, 2), (64, 56), (64, 4), (0, 4)]:
            with (
                whole[start : start + size] as x,
                dlw.empty(ROOM, "uint32", device=device) as seen,
            ):
                kernel(x, seen, 0, workgroups=1)
                found = (await seen.to_host()).tolist()
            assert found[0] == size
            assert found[1 : 1 + size] == values[start : start + size].tolist()


@pytest.mark.parametrize("size", [16, 20, 32, 36])
async def test_a_uniform_is_bound_whole(size, device):
    """In each run of a batch, also where it is copied aside."""
    code = """
@group(0) @binding(0) var<uniform> x: array<vec4u, COUNT>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() {
  for (var i = 0u; i < 4 * COUNT; i++) { y[i] = x[i / 4][i % 4]; }
}
"""
    kernel = dlw.webgpu.Kernel(code.replace("COUNT", f"{size // 16}"))
    with dlw.from_dlpack(np.arange(200, dtype="u4"), device=device) as whole:
        for start in (0, 1, 64, 100):
            x, y = (
                whole[start : start + size // 4],
                dlw.empty(8, "uint32", device=device),
            )
            with dlw.webgpu.batch() as batch:
                kernel(x, y, workgroups=1)
            for _ in range(2):
                batch.run()
                found = (await y.to_host())[: size // 16 * 4]
                assert found.tolist() == [*range(start, start + found.size)]
            for each in batch, x, y:
                each.release()
