"""Python for the arrow page: a column of an Arrow file -> GPU -> histogram.

`page` is the page's JavaScript. It counts and times the code inside `with step(...)`;
`check` records whether a condition holds.
"""

from contextlib import contextmanager

import numpy as np
import page

import dlpack_web as dlw

GROUPS = 64  # workgroups, each with its own counts at first

HISTOGRAM = """
@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read> valid: array<u32>; // a byte for each value
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> nulls: u32;  // whether valid says anything
@group(0) @binding(4) var<uniform> scale: f32;  // bins for each 1, a power of two
@group(0) @binding(5) var<uniform> lowest: i32; // the first bin's number

var<workgroup> here: array<atomic<u32>, 256>;

@compute @workgroup_size(256)
fn main(
  @builtin(global_invocation_id) id: vec3u,
  @builtin(local_invocation_index) local: u32,
  @builtin(num_workgroups) groups: vec3u,
) {
  atomicStore(&here[local], 0);
  workgroupBarrier();
  for (var i = id.x; i < arrayLength(&values); i += groups.x * 256) {
    if (nulls == 1 && ((valid[i / 4] >> (8 * (i % 4))) & 1) == 0) { continue; }
    let bin = i32(floor(values[i] * scale)) - lowest;
    if (bin >= 0 && bin < 256) { atomicAdd(&here[bin], 1); }
  }
  workgroupBarrier();
  if (local < arrayLength(&counts)) { atomicAdd(&counts[local], atomicLoad(&here[local])); }
}
"""


async def start():
    """The device, and the kernel for it."""
    device = await dlw.webgpu.request_device()
    return {"device": device, "histogram": dlw.webgpu.Kernel(HISTOGRAM)}


async def run(with_, column, there, low, high, width):
    """Counts of the values of a column from low up to high, in bins of this width.

    column: JavaScript's Tensor over the bytes of the file. there: JavaScript's Tensor
    of bool, False where a value is null; None: no nulls. low, high: multiples of width,
    which is a power of two, so no edge of a bin is rounded.
    """
    device, live_before = with_["device"], dlw.live_tensors()
    bins = round((high - low) / width)

    with step("column to GPU", column.nbytes):
        values = received(column.to(device.gpu))
    if there is None:
        valid = dlw.empty(4, "bool", device=device)
    else:
        with step("which are null, to GPU", there.nbytes):
            valid = received(there.to(device.gpu))
    counts = dlw.empty(bins, "uint32", device=device)
    with step("WGSL: histogram", 0):
        with_["histogram"](
            values,
            valid,
            counts,
            int(there is not None),
            1 / width,
            round(low / width),
            workgroups=GROUPS,
        )
        await with_["histogram"].ready()
    with step("counts to NumPy", counts.nbytes):
        found = await counts.to_host()
    for each in (values, valid, counts):
        each.release()

    with step("to compare: a copy for NumPy", column.nbytes):
        host = dlw.from_js(column)
    with step("to compare: numpy.histogram", 0):
        given = host.numpy()
        if there is not None:
            given = given[dlw.from_js(there).numpy()]
        expected, _ = np.histogram(given, bins=bins, range=(low, high))
    rows = column.size
    check("GPU and NumPy count the same in every bin", (found == expected).all())
    check("no value is outside, and no null is counted", found.sum() == given.size)
    del given
    host.release()
    check("every tensor of Python's was released", dlw.live_tensors() == live_before)
    return found, rows, rows - int(found.sum())


def received(uploaded):
    """Python's Tensor over a GPU buffer that JavaScript has filled."""
    try:
        return dlw.from_js(uploaded)
    finally:
        uploaded.release()


@contextmanager
def step(name, nbytes):
    page.begin(name, nbytes)
    try:
        yield
    finally:
        page.end()


def check(name, held):
    page.check(name, bool(held))
