"""tests/array_api.json has what the array API has of exchange and devices."""

import pytest

pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")


def test_the_file_is_what_the_package_has():
    import array_api

    assert array_api.FILE.read_text("utf-8") == array_api.text(), (
        "`build/libs/bin/python tests/interop/array_api.py` writes it"
    )
