# page.tensors: what the script of a page knows by name.
import gc

import numpy as np
import pytest
from fake_page import DOUBLE, finish, joined, read, tidied

import dlpack_web as dlw
from dlpack_web_page._page.tensors import Tensors


@pytest.fixture
def page():
    """A kernel that a page has met, and the mapping."""
    host, page, channel = joined()
    return host, page, channel, Tensors(host)


def test_a_tensor_is_given_under_a_name_without_a_copy(page):
    host, fake, channel, tensors = page
    t = dlw.from_dlpack(np.arange(6.0).reshape(2, 3), device=host.device)
    up = host.backend().stats()[0]["up"]
    tensors["points"] = t
    channel.deliver()
    fact, elements = fake.given["points"]
    assert (fact["id"], fact["shape"], fact["readOnly"]) == (1, [2, 3], False)
    assert np.array_equal(elements, [[0, 1, 2], [3, 4, 5]])
    rows = host.backend().stats()[0]
    assert (rows["up"], rows["copied"], rows["buffers"]) == (up, 0, 1)
    t.release()


def test_it_is_a_mapping(page):
    host, fake, channel, tensors = page
    with dlw.empty(3, device=host.device) as a, dlw.empty(4, device=host.device) as b:
        tensors.update(a=a, b=b)
        assert (len(tensors), [*tensors], "a" in tensors) == (2, ["a", "b"], True)
        assert tensors.get("c") is None
        assert 3 not in tensors
        with tensors["b"] as found:
            assert isinstance(found, dlw.Tensor)
            assert found.shape == (4,)
        assert "'a': Tensor float32[3] on webgpu:" in repr(tensors)
        del tensors["a"]
        with tensors.pop("b") as found:
            assert found.shape == (4,)
        assert repr(tensors) == "<tensors of a page: none>"
        channel.deliver()
        assert fake.given == {}
        with pytest.raises(KeyError, match="a"):
            _ = tensors["a"]
        with pytest.raises(KeyError, match="a"):
            del tensors["a"]
    assert tidied(fake, host) == {}


def test_the_page_has_holds_of_its_own(page):
    host, fake, channel, tensors = page
    with dlw.from_dlpack(np.arange(3.0), device=host.device) as t:
        tensors["x"] = t
    with tensors["x"] as found:
        pass  # what it gave is released, and the page's is not
    assert found.released
    gc.collect()
    channel.deliver()
    with tensors["x"] as found:
        assert read(channel, found).tolist() == [0, 1, 2]
    assert dlw.live_tensors() == 1
    with dlw.empty(3, device=host.device) as other:
        tensors["x"] = other  # replaced: the first one is released
        tensors["x"] = other  # shown again
    assert fake.gives == ["x"]
    assert dlw.live_tensors() == 1
    tensors.clear()
    assert dlw.live_tensors() == 0
    assert tidied(fake, host) == {}


def test_within_another_operation_it_is_given_afterwards(page):
    host, fake, channel, tensors = page
    t = dlw.from_dlpack(np.arange(3.0), device=host.device)
    link, post = host.link, host.link._post

    def posting(content, buffers):
        link._post = post
        post(content, buffers)
        tensors["x"] = t
        dlw.empty(3, device=host.device).release()
        dlw.from_dlpack(np.ones(3), device=host.device).release()
        dlw.webgpu.Kernel(DOUBLE, "double")

    link._post = posting
    dlw.empty(3, device=host.device).release()
    with tensors["x"] as found:
        assert read(channel, found).tolist() == [0, 1, 2]
    tensors.clear()
    t.release()
    assert dlw.live_tensors() == 0
    assert (tidied(fake, host), fake.kernels) == ({}, {})


def test_the_order_is_that_of_calls(page):
    host, fake, channel, tensors = page
    double = dlw.webgpu.Kernel(DOUBLE, "double")
    with dlw.from_dlpack(np.arange(3, dtype="f4"), device=host.device) as t:
        double(t)
        tensors["x"] = t
        double(t)
        with t[1:] as part:
            tensors["part"] = part
        channel.deliver()
        assert fake.given["x"][1].tolist() == [0, 2, 4]
        assert fake.given["part"][1].tolist() == [4, 8]
        assert read(channel, t).tolist() == [0, 4, 8]


BAD = [
    (3, "t", TypeError, "the name of a tensor is a str, not an int"),
    ("\ud800", "t", ValueError, "is not Unicode text"),
    ("x", np.zeros(3), TypeError, "is given Tensors, not an ndarray: use dlw.from_dlp"),
    ("x", None, TypeError, "not a NoneType"),
    ("x", "cpu", BufferError, "cpu is not on the device of this page, webgpu:"),
    ("x", "other", BufferError, r"float32\[3\] on webgpu:\d+ is not on the device of"),
    ("x", "released", dlw.ReleasedError, "released"),
]


@pytest.mark.parametrize(("name", "value", "error", "message"), BAD)
def test_what_cannot_be_given_is_an_error(page, name, value, error, message):
    host, fake, channel, tensors = page
    other, _, _ = joined()
    if isinstance(value, str):
        devices = {"cpu": "cpu", "other": other.device}
        given = dlw.empty(3, device=devices.get(value, host.device))
        if value == "released":
            given.release()
    else:
        given = value
    with pytest.raises(error, match=message):
        tensors[name] = given
    channel.deliver()
    assert (len(tensors), fake.gives) == (0, [])
    with dlw.empty(3, device=host.device) as t:
        tensors["x"] = t  # all goes on
    channel.deliver()
    assert "x" in fake.given


def test_a_message_that_is_not_sent_leaves_the_mapping_as_it_was(page):
    host, _, _, tensors = page

    def post(content, buffers):
        raise OSError("the channel is closed")

    with dlw.empty(3, device=host.device) as t, dlw.empty(4, device=host.device) as u:
        tensors["x"] = t
        link = host.backend().link
        link._post, before = post, link._post
        with pytest.raises(OSError, match="the channel is closed"):
            tensors["x"] = u
        with pytest.raises(OSError, match="the channel is closed"):
            del tensors["x"]
        link._post = before
        assert dlw.live_tensors() == 3
        with tensors["x"] as found:
            assert found.shape == (3,)


def test_an_error_of_the_page_is_a_warning_at_the_line(page):
    host, fake, channel, tensors = page
    fake.give = lambda op: fake.orders.send(
        {"fault": "the page has no tensor 1", "site": op["site"]}
    )
    with dlw.empty(3, device=host.device) as t:
        tensors["x"] = t
        with pytest.warns(RuntimeWarning, match="the page has no tensor 1") as caught:
            channel.deliver()
    assert caught[0].filename == __file__
    assert host.backend().error_count(host.device.id) == 1


def test_a_tensor_that_is_shown_is_read_and_written(page):
    host, _, channel, tensors = page
    with dlw.empty(3, "uint32", device=host.device) as t:
        tensors["x"] = t
    with tensors["x"] as found, found[1:] as rows:
        rows.write(np.array([7, 8], "u4"))
        assert finish(channel, found.to_host()).tolist() == [0, 7, 8]
