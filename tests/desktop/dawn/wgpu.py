"""Stands for the package wgpu where it comes first on the path: the same interface over Dawn,
with the experimental features that buffers over host memory need."""

import wgpudawn
from wgpudawn.backends.dawn import extras

extras.set_instance_extras(enable_toggles=["allow_unsafe_apis"])
wgpudawn.install_as_wgpu()

__version__ = wgpudawn.wgpu_py_version


def __getattr__(name):
    """For a thread that imported this file while it ran."""
    return getattr(wgpudawn, name)
