"""What a browser's console shows of a tensor at once: dtype, shape, size, device."""

from __future__ import annotations

from typing import Any

import pytest
from browser import is_firefox, open_page
from playwright.sync_api import Browser
from serve import Server

LOG = """async () => {
  const { Tensor } = await import("/js/index.js");
  const tensor = Tensor.fromTypedArray(Float32Array.of(1, 2, 3, 4), { shape: [2, 2] });
  console.log(tensor);
  tensor.release();
}"""


@pytest.mark.skipif(is_firefox(), reason="asks by Chromium's own protocol")
def test_what_a_tensor_is_can_be_read(browser: Browser, server: Server) -> None:
    with open_page(browser, server.url) as (page, _):
        tools = page.context.new_cdp_session(page)
        tools.send("Runtime.enable")
        logged: list[dict[str, Any]] = []
        tools.on("Runtime.consoleAPICalled", lambda event: logged.append(event))
        page.goto(f"{server.url}404.html")
        page.evaluate(LOG)
        (tensor,) = (
            argument
            for event in logged
            for argument in event["args"]
            if argument.get("description") == "Tensor"
        )
    shown = {part["name"]: part["value"] for part in tensor["preview"]["properties"]}
    assert shown.pop("_managed").endswith("Tensor")
    assert shown == {
        "dtype": "float32",
        "_shape": "Array(2)",
        "size": "4",
        "device": "NamedDevice",
    }
