"""A user's program as `mypy --strict` sees it; nothing runs this."""

from typing import Any, assert_type

import numpy as np

import dlpack_web as dlw
import dlpack_web_tinygrad as dlwt

Array = np.ndarray[Any, Any]


async def training(t: dlw.Tensor) -> None:
    assert_type(dlwt.install(), dlw.Device)
    dlwt.install(t.device)
    assert_type(dlwt.to_dlpack(dlwt.from_dlpack(t)), dlw.Tensor)
    assert_type(await dlwt.to_host(dlwt.from_dlpack(t)), Array)
    dlwt.install(3)  # type: ignore[arg-type]
