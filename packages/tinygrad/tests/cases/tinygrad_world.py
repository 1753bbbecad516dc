"""What the cases of tinygrad share. tinygrad is imported after install()."""

import gc

import numpy as np
import pytest
from gpu_world import live

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

dlwt.install()
from tinygrad import Tensor, dtypes

from dlpack_web_tinygrad._device import in_use

__all__ = ["Tensor", "dtypes", "held", "installed", "moved", "read", "upload"]


@pytest.fixture
def installed():
    """Again after a test that lost the device."""
    return dlwt.install()


def read(t):
    """The elements of a tensor, which may be anywhere."""
    array = t.numpy()
    assert isinstance(array, np.ndarray)
    return array


def upload(values, dtype="float32"):
    return dlw.from_dlpack(np.asarray(values, dtype)).to_device(in_use())


def moved():
    return sum(row["copies"] for row in dlw.webgpu.stats())


def held():
    """What is alive, without what only exceptions and cycles keep."""
    gc.collect()
    return live()
