"""timing.py: 64 MB up and down on the desktop, ours beside wgpu-py by hand, in one run.

Prints a table; fails where ours takes more than 1.1 times as long.
"""

import asyncio
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
sys.path.insert(0, str(Path(__file__).parents[2] / "py"))

import dlpack_web as dlw

TURNS = 15
LIMIT = 1.1


def times(works):
    """Seconds of each, one after the other in turn, so that all see the same machine."""
    found = [[] for _ in works]
    for turn in range(TURNS + 2):
        for work, row in zip(works, found, strict=True):
            begin = time.perf_counter()
            work()
            if turn >= 2:
                row.append(time.perf_counter() - begin)
    return [statistics.median(row) for row in found]


def main():
    device = asyncio.run(dlw.webgpu.request_device())
    gpu, array = device.gpu, np.ones(16 << 20, "f4")
    flags = "STORAGE | COPY_SRC | COPY_DST"
    buffer = gpu.create_buffer(size=array.nbytes, usage=flags)
    host = dlw.from_dlpack(array)
    kept = host.to_device(device)

    def settle():
        gpu.queue.read_buffer(buffer, 0, 4)

    def up():
        kept.write(host)
        settle()

    def up_by_hand():
        gpu.queue.write_buffer(buffer, 0, array)
        settle()

    def down():
        np.asarray(kept)

    def down_by_hand():
        np.frombuffer(gpu.queue.read_buffer(buffer), "f4")

    print(gpu.adapter.summary if hasattr(gpu, "adapter") else "")
    worst = 0.0
    for name, ours, by_hand in (
        ("upload", up, up_by_hand),
        ("readback", down, down_by_hand),
    ):
        a, b = times([ours, by_hand])
        worst = max(worst, a / b)
        print(
            f"{name:9} dlpack_web {a * 1e3:7.1f} ms, by hand {b * 1e3:7.1f} ms, "
            f"{a / b:.2f} times"
        )
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
