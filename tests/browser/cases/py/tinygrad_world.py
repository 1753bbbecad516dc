"""What the cases of tinygrad share: it is imported after install()."""

import numpy as np
import pytest
from gpu_world import run

from dlpack_web import tinygrad as dlwt

run(__import__("dlpack_web").webgpu.request_device())
dlwt.install()
from tinygrad import Tensor, dtypes  # noqa: E402

__all__ = ["Tensor", "dtypes", "installed", "read"]


@pytest.fixture
def installed():
    """Again after a test that lost the device."""
    return dlwt.install()


def read(t):
    """The elements of a tensor, which may be anywhere."""
    array = t.numpy()
    assert isinstance(array, np.ndarray)
    return array
