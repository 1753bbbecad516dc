"""Arrays from a JupyterLab kernel to the page's GPU and back: dlpack_web_page.widget, the host's
own channel with the same bytes as bare buffers in pieces of several sizes, one message
with the whole array, as widgets usually send it, and a WebSocket of the kernel, ours and a
bare one. In random order in every turn, in one notebook.

Writes build/widget-timing.json. Usage: python tests/widget/timing.py [ROUNDS]
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "web"), str(Path(__file__).parent)]

import lab
from browser import FLAGS, find_chromium
from playwright.sync_api import sync_playwright

BARE = """
import anywidget, asyncio, contextvars, random, time
from pathlib import Path
from websockets.asyncio.server import serve
class Bare(anywidget.AnyWidget):
    _esm = '''
    async function initialize({ model }) {
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      let buffer, at;
      model.on("msg:custom", async ({ op, bytes, url }, buffers) => {
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
        } else if (op === "socket") {
          const socket = new WebSocket(url);
          socket.binaryType = "arraybuffer";
          socket.onmessage = async ({ data }) => {
            if (typeof data !== "string") {
              device.queue.writeBuffer(buffer, at, data);
              at += data.byteLength;
              data.transfer(0); // or the collector stops the page
              return;
            }
            const { begin, fresh, end, down } = JSON.parse(data);
            if (begin !== undefined) {
              if (fresh || buffer?.size !== begin) {
                buffer?.destroy();
                buffer = device.createBuffer({ size: begin, usage: 140 });
              }
              at = 0;
            } else if (end) {
              await device.queue.onSubmittedWorkDone();
              socket.send("done");
            } else socket.send(new Uint8Array(down));
          };
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

    async def connect(self):
        found = self.loop.create_future()
        async def taken(socket):
            found.set_result(socket)
            await socket.wait_closed()
        server = await serve(taken, "127.0.0.1", 0, compression=None, max_size=None)
        self.tell({"op": "socket", "url": f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
        self.socket = await found

    async def until(self, test):
        while not test():
            self.event.clear()
            await asyncio.wait_for(self.event.wait(), 60)

bare = Bare()
bare
"""

READY = """
await bare.until(lambda: bare.took is not None)
await bare.connect()
await page.ready()
await near.ready()
assert near.direct
said("ready")
while not Path("go").exists():
    await asyncio.sleep(0.1)
"""

MEASURE = """
def settled(page):
    return page._host.backend().settle(0)

async def ours(a, page):
    dlw.from_dlpack(a, device=page).release()  # it returns when the GPU has all elements

async def pieces(a, size, window):
    flat, bare.got, bare.took = memoryview(a).cast("B"), 0, None
    bare.tell({"op": "begin", "bytes": a.nbytes})
    for first in range(0, a.nbytes, size):
        await bare.until(lambda: first - bare.got <= window - size)
        bare.tell({"op": "piece"}, buffers=[flat[first : first + size]])
    bare.tell({"op": "end"})
    await bare.until(lambda: "done" in (bare.took or ()))

async def by_socket(a, size, fresh=True):
    flat = memoryview(a).cast("B")
    await bare.socket.send(json.dumps({"begin": a.nbytes, "fresh": fresh}))
    for first in range(0, a.nbytes, size):
        await bare.socket.send(flat[first : first + size])
    await bare.socket.send(json.dumps({"end": True}))
    assert await asyncio.wait_for(bare.socket.recv(), 60) == "done"

async def back(t):
    await t.to_host()

async def raw_back(bytes):
    bare.took = None
    bare.tell({"op": "down", "bytes": bytes})
    await bare.until(lambda: "done" in (bare.took or ()))

async def raw_back_by_socket(bytes):
    await bare.socket.send(json.dumps({"down": bytes}))
    assert len(await bare.socket.recv()) == bytes

async def timed(what):
    begin = time.perf_counter()
    await what
    return time.perf_counter() - begin

async def rate(write, seconds=3):
    begin, count = time.perf_counter(), 0
    while time.perf_counter() < begin + seconds:
        await write()
        count += 1
    return count / (time.perf_counter() - begin)

for each in page, near:
    while not each._host.backend().can_block(): # its first messages come before the subshell
        await settled(each)
MB = 1 << 20
up = np.ones(16 * MB, "f4")
down, near_down = (dlw.empty(4 * MB, "float32", device=each) for each in (page, near))
ways = {
    "up, dlpack-web": lambda: ours(up, page),
    "up, dlpack-web, direct": lambda: ours(up, near),
    "up, bare WebSocket, 1 MiB": lambda: by_socket(up, MB),
    "up, bare WebSocket, 4 MiB": lambda: by_socket(up, 4 * MB),
    "up, one message": lambda: pieces(up, 64 * MB, 64 * MB),
}
for size, window in ((1, 4), (1, 16), (4, 8), (4, 16), (4, 64), (16, 32)):
    ways[f"up, bare, {size} of {window} MiB"] = lambda s=size, w=window: pieces(up, s * MB, w * MB)
ways["down, dlpack-web"] = lambda: back(down)
ways["down, dlpack-web, direct"] = lambda: back(near_down)
ways["down, bare, 4 MiB"] = lambda: raw_back(16 * MB)
ways["down, bare WebSocket"] = lambda: raw_back_by_socket(16 * MB)
found = {name: [] for name in ways}
for turn in range(ROUNDS + 1):
    for name, way in random.sample([*ways.items()], len(ways)):
        seconds = await timed(way())
        if turn:
            found[name].append(seconds)

part = np.ones(MB // 4, "f4")
for each, how in (page, ""), (near, ", direct"):
    with dlw.empty(MB // 4, "float32", device=each) as t:
        async def write():
            t.write(part)
            await settled(each)
        found[f"writes of 1 MiB a second{how}"] = [await rate(write) for _ in range(ROUNDS)]
found["writes a second, bare"] = [await rate(lambda: pieces(part, MB, MB)) for _ in range(ROUNDS)]
found["writes a second, bare WebSocket"] = [await rate(lambda: by_socket(part, MB, False)) for _ in range(ROUNDS)]

def renderers():
    return [each.parent for each in Path("/proc").glob("[0-9]*/cmdline") if "--type=renderer" in each.read_text()]

def most(processes): # since the last call of forget()
    lines = "".join((each / "status").read_text() for each in processes).splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

def forget(processes):
    for each in processes:
        (each / "clear_refs").write_text("5")

big = np.ones(64 * MB, "f4")
processes = {"kernel": [Path("/proc/self")], "page": renderers()}
ways = {"": lambda: ours(big, page), ", direct": lambda: ours(big, near)}
ways[", bare WebSocket"] = lambda: by_socket(big, 4 * MB)
for how, way in ways.items():
    for all in processes.values():
        forget(all)
    at = {name: most(all) for name, all in processes.items()}
    await way()
    for name, all in processes.items():
        found[f"{name}'s memory for 256 MiB{how}, MiB"] = [most(all) - at[name]]
said(found)
"""


@contextmanager
def chromium(folder: Path) -> Iterator[str]:
    """A Chromium that nothing drives, until the block ends; its debugging address."""
    # Playwright keeps each message of the WebSockets of a page that it drives.
    profile = folder / ".home" / "chromium"
    program = find_chromium()
    assert program is not None
    command = [
        program,
        "--headless=new",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        *FLAGS,
        "about:blank",
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            port = profile / "DevToolsActivePort"
            end = time.monotonic() + lab.LIMIT_S
            while not (port.exists() and "\n" in port.read_text()):
                assert time.monotonic() < end
                assert process.poll() is None
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port.read_text().split()[0]}"
        finally:
            process.terminate()


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    cells = [
        BARE,
        "page = dlpack_web_page.widget.Page()\npage",
        "near = dlpack_web_page.widget.Page(direct=True)\nnear",
        READY,
        MEASURE.replace("ROUNDS", str(rounds)),
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        lab.serving(Path(folder)) as server,
        chromium(Path(folder)) as address,
    ):
        server.notebook("timing", cells)
        with sync_playwright() as playwright:
            browser = playwright.chromium.connect_over_cdp(address)
            page = browser.contexts[0].new_page()
            lab.open_notebook(page, server, "timing")
            lab.run_all(page)
            server.wait_for("timing", 1, page)
        (Path(folder) / "go").touch()
        _, found = server.wait_for("timing", 2)
    result = {}
    for name, values in found.items():
        low, median, high = (
            statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
        )
        result[name] = {"median": median, "iqr": high - low, "n": len(values)}
        print(f"{name:44} {median:8.3f}  (iqr {high - low:.3f}, n {len(values)})")
    (ROOT / "build" / "widget-timing.json").write_text(
        json.dumps(result, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
