# What only Python sees of the receiving half.
from player import Player


def test_what_the_application_holds_outlives_the_next_tensor():
    player = Player()
    player.play("open")
    player.play("in piece y 1.1 float64[3]")
    shown = player.wire.tensors["y"]
    hold, array = shown[...], shown.numpy()
    elements = array.tolist()
    player.play("in piece y 2.1 float64[5]")
    assert shown.released
    assert player.wire.tensors["y"].shape == (5,)
    assert hold.numpy().tolist() == array.tolist() == elements
    hold.release()
    player.play("close")


def test_a_tensor_for_which_there_is_no_memory_is_refused():
    def make(piece):
        raise MemoryError

    player = Player()
    player.play("open")
    player.wire._receiving.make = make
    why = "there is no memory for 'x'"
    assert player.play("in piece x 1.1") == [f"out refuse 1.1 {why}", f"refused {why}"]
