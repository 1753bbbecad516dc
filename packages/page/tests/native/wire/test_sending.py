# What only Python's sending half has: exceptions of the channel at the call, slices as parts.
import numpy as np
import pytest
from player import Player

import dlpack_web as dlw
from dlpack_web_page._wire.frame import LEAST_PIECE, Free, Hello
from dlpack_web_page._wire.sending import Sending


@pytest.mark.parametrize("frames", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_a_failing_channel_was_given_is_over(frames, error):
    """After an exception nothing keeps the caller's memory, and nothing of it is sent."""
    before, posts, broken = dlw.live_tensors(), [], [frames]

    def post(body, payload):
        posts.append(body)
        if len(posts) - 1 in broken:
            raise error("of the channel")

    half = Sending(LEAST_PIECE, post, lambda: 0)
    half.connect(Hello(2**20, LEAST_PIECE))
    with pytest.raises(error, match="of the channel"):
        half.open("x", np.zeros(LEAST_PIECE))
    assert dlw.live_tensors() == before
    assert isinstance(posts[-1], Free)
    broken.clear()
    posts.clear()
    half.connect(Hello(2**20, LEAST_PIECE))
    assert [type(body) for body in posts] == [Free]
    remote = half.open("x", np.zeros(4))
    broken.append(len(posts))
    with pytest.raises(error, match="of the channel"):
        remote.write(np.ones(4))
    with pytest.raises(BufferError, match="interrupted"):
        remote.write(np.ones(4))
    assert "interrupted" in str(remote.ready.exception())
    assert dlw.live_tensors() == before


def test_parts_are_slices_of_the_first_axis():
    player = Player()
    player.play("open")
    player.play("send x float64[4,3]")
    remote = player.remotes["1"]
    for rows, at in (slice(3, 1), "24-24"), (slice(-1, None), "72-96"):
        remote[rows].write(np.zeros((4, 3))[rows])
        assert f" {at} of {at} " in player.play("has")[0]
    for wrong in 3, slice(0, 3, 2), slice(3, 0, -1), "x":
        with pytest.raises(TypeError, match="a part is a slice"):
            remote[wrong]
    player.play("close")


def test_a_name_that_no_frame_has_leaves_nothing():
    half = Sending(LEAST_PIECE, lambda *_: None, lambda: 0)
    with pytest.raises(TypeError, match="a tensor's name is a str"):
        half.open("\ud800", np.zeros(3))
    given = dlw.empty(3, "float32x4")
    with given, pytest.raises(BufferError, match="safetensors has no"):
        half.open("x", given)
    assert not half._remotes
    assert not half._named
