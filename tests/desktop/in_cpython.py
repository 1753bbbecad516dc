"""What gpu_world.py has the same over wgpu-py and over memory: the GPU is not in a page."""

import asyncio

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
