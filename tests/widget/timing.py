"""Arrays from a JupyterLab kernel to the page's GPU and back: dlpack_web.widget, the host's
own channel with the same bytes as bare buffers in pieces of several sizes, and one message
with the whole array, as widgets usually send it. In turn, in one notebook.

Writes build/widget-timing.json. Usage: python tests/widget/timing.py [ROUNDS]
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "web"), str(Path(__file__).parent)]

import lab
from browser import open_browser

BARE = """
import anywidget, asyncio, contextvars, resource, time
class Bare(anywidget.AnyWidget):
    _esm = '''
    async function initialize({ model }) {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      let buffer, at;
      model.on("msg:custom", async ({ op, bytes }, buffers) => {
        if (op === "begin") {
          buffer?.destroy();
          buffer = device.createBuffer({ size: bytes, usage: 140 });
          at = 0;
        } else if (op === "piece") {
          for (const each of buffers) {
            const data = ArrayBuffer.isView(each) ? each : new Uint8Array(each);
            device.queue.writeBuffer(buffer, at, data.buffer, data.byteOffset, data.byteLength);
            at += data.byteLength;
          }
          model.send({ got: at });
        } else if (op === "end") {
          await device.queue.onSubmittedWorkDone();
          model.send({ done: true });
        } else if (op === "down") {
          const size = 4 << 20; // Jupyter's server ends a connection at messages over 10 MiB
          for (let i = size; i <= bytes; i += size) {
            const done = i === bytes || undefined;
            model.send({ done }, undefined, [new Uint8Array(size).buffer]);
          }
        }
      });
      model.send({ ready: true });
    }
    export default { initialize };'''

    def __init__(self):
        super().__init__()
        self.got, self.event, self.took = 0, asyncio.Event(), None
        self.context, self.loop = None, asyncio.get_running_loop()
        self.on_msg(self.receive)

    def tell(self, content, buffers=()):
        # From the context of the page's first message, or answers wait for the cell to end.
        self.context.copy().run(self.send, content, buffers=list(buffers))

    def receive(self, _, content, buffers):
        self.context = self.context or contextvars.copy_context()
        self.loop.call_soon_threadsafe(self.take, content)

    def take(self, content):
        self.got, self.took = content.get("got", self.got), content
        self.event.set()

    async def until(self, test):
        while not test():
            self.event.clear()
            await asyncio.wait_for(self.event.wait(), 60)

bare = Bare()
bare
"""

READY = """
await bare.until(lambda: bare.took is not None)
await page.ready()
said("ready")
"""

MEASURE = """
def settled():
    return page._host.backend().settle(0)

async def ours(a):
    with dlw.from_dlpack(a, device=page):
        await settled()

async def pieces(a, size, window):
    flat, bare.got, bare.took = memoryview(a).cast("B"), 0, None
    bare.tell({"op": "begin", "bytes": a.nbytes})
    for first in range(0, a.nbytes, size):
        await bare.until(lambda: first - bare.got <= window - size)
        bare.tell({"op": "piece"}, buffers=[flat[first : first + size]])
    bare.tell({"op": "end"})
    await bare.until(lambda: "done" in (bare.took or ()))

async def back(t):
    await t.to_host()

async def raw_back(bytes):
    bare.took = None
    bare.tell({"op": "down", "bytes": bytes})
    await bare.until(lambda: "done" in (bare.took or ()))

async def timed(what):
    begin = time.perf_counter()
    await what
    return time.perf_counter() - begin

MB = 1 << 20
up, down = np.ones(16 * MB, "f4"), dlw.empty(4 * MB, "float32", device=page)
ways = {"up, dlpack-web": lambda: ours(up), "up, one message": lambda: pieces(up, 64 * MB, 64 * MB)}
for size, window in ((1, 4), (1, 16), (4, 8), (4, 16), (4, 64), (16, 32)):
    ways[f"up, bare, {size} of {window} MiB"] = lambda s=size, w=window: pieces(up, s * MB, w * MB)
ways["down, dlpack-web"] = lambda: back(down)
ways["down, bare, 4 MiB"] = lambda: raw_back(16 * MB)
found = {name: [] for name in ways}
for turn in range(ROUNDS + 1):
    for name, way in ways.items():
        seconds = await timed(way())
        if turn:
            found[name].append(seconds)

part = np.ones(MB // 4, "f4")
with dlw.empty(MB // 4, "float32", device=page) as t:
    begin, count = time.perf_counter(), 0
    while time.perf_counter() < begin + 5:
        t.write(part)
        await settled()
        count += 1
    found["writes of 1 MiB for each second"] = [count / (time.perf_counter() - begin)]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
big = np.ones(64 * MB, "f4")
at = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
await ours(big)
found["kernel's memory for 256 MiB, MiB"] = [(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - at) / 1024]
said(found)
"""


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cells = [
        BARE,
        "page = dlw.widget.Page()\npage",
        READY,
        MEASURE.replace("ROUNDS", str(rounds)),
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.serving(Path(folder)) as server,
        open_browser([]) as browser,
    ):
        server.notebook("timing", cells)
        page = browser.new_page()
        lab.open_notebook(page, server, "timing")
        lab.run_all(page)
        _, found = server.wait_for("timing", 2, page)
    result = {}
    for name, values in found.items():
        low, median, high = (
            statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        )
        result[name] = {"median": median, "iqr": high - low, "n": len(values)}
        print(f"{name:36} {median:8.3f}  (iqr {high - low:.3f}, n {len(values)})")
    (ROOT / "build" / "widget-timing.json").write_text(
        json.dumps(result, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
