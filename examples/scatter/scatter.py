"""A scatter plot of millions of points, drawn and searched by the GPU of the page."""

from pathlib import Path

import numpy as np
import traitlets

import dlpack_web as dlw
from dlpack_web_page.widget import Page

TURN = """
@group(0) @binding(0) var<storage, read_write> points: array<vec2f>;
@group(0) @binding(1) var<uniform> angle: f32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&points)) {
    let c = cos(angle);
    let s = sin(angle);
    points[id.x] = mat2x2f(c, s, -s, c) * points[id.x];
  }
}
"""


class Scatter(Page):
    """Display it, await `ready()`, then `show()` points. Drag the mouse to select some."""

    _esm = Path(__file__).with_name("scatter.bundle.js")

    #: {"rectangle": [x0, y0, x1, y1], "count": n}; empty: nothing was selected yet.
    selected = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits):
        super().__init__(**traits)
        self._turn = dlw.webgpu.Kernel(TURN, label="turn")

    def show(self, points):
        """Draws points: a Tensor of float32 of shape (n, 2) on this page's device, from
        -1 to 1. Kernels that write to it move them."""
        self.selected = {}
        for name, size in (("indices", len(points)), ("count", 1)):
            with dlw.empty(size, "uint32", device=self) as t:
                self.tensors[name] = t
        self.tensors["points"] = points

    def turn(self, angle):
        """Turns all points around the middle, in radians."""
        with self.tensors["points"] as points:
            groups = -(-len(points) // 256)
            self._turn(points, angle, workgroups=groups)

    async def indices(self):
        """The selected points, by their indices: uint32, in order."""
        count = self.selected.get("count", 0)
        with self.tensors["indices"] as every, every[:count] as found:
            return np.sort(await found.to_host())
