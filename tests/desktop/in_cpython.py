"""What gpu_world.py has the same over wgpu-py and over memory: the GPU is not in a page."""

import asyncio
import gc
from types import SimpleNamespace

import pytest

import dlpack_web as dlw
from dlpack_web import _core


def only_in_a_page(reason):
    """A mark for what only a page has."""
    return pytest.mark.skip(reason=f"in a page only: {reason}")


def run(awaitable):
    async def main():
        return await awaitable

    return asyncio.run(main())


def live():
    """Tensors alive, and GPU buffers under them."""
    return dlw.live_tensors(), sum(row["buffers"] for row in dlw.webgpu.stats())


def _memory_of(tensor):
    return memoryview(_core._raw(tensor)[0])


def set_bytes(tensor, data):
    """Writes the memory of a CPU tensor."""
    _memory_of(tensor)[:] = data


def get_bytes(tensor):
    return bytes(_memory_of(tensor))


def counts_since(before, gpu_bytes, map_async):
    """What was copied since those statistics, and what was seen to be copied and mapped."""
    after = dlw.webgpu.stats()

    def more(name):
        return sum(row[name] for row in after) - sum(row[name] for row in before)

    return SimpleNamespace(
        copies=more("copies"),
        copied_bytes=more("up") + more("down") + more("copied"),
        gpu_bytes=gpu_bytes,
        map_async=map_async,
    )


def same(one, other):
    """Whether two GPUBuffers or GPUDevices are the same."""
    return one is other


async def destroy(device):
    """Loses a device."""
    device.gpu.destroy()


def callback(function):
    """A function for our side to call, until `forget`."""
    return function


def forget(given):
    pass


def collect():
    """The garbage collection, of which there is one."""
    gc.collect()
    return True
