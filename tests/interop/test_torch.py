"""What only PyTorch has: the exchange API on its side, autograd, views, subclasses."""

import sys

import numpy as np
import pytest
from frameworks import address

import dlpack_web as dlw

torch = pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def asked():
    """The arguments of every call of `__dlpack__` of a torch.Tensor, which stays as it is:
    the exchange API of a class stands for the method that the class has."""
    calls = []
    code = torch.Tensor.__dlpack__.__code__

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is code:
            calls.append(dict(frame.f_locals))

    sys.setprofile(watch)
    yield calls
    sys.setprofile(None)


def test_exchange_api_is_used(asked):
    with dlw.from_dlpack(torch.ones(3)) as tensor:
        assert tensor.numpy().tolist() == [1, 1, 1]
    assert asked == []


@pytest.mark.parametrize("wish", [{"copy": False}, {"device": "cpu"}])
def test_requests_go_to_dlpack(asked, wish):
    """The exchange API has no words for them."""
    array = torch.ones(3)
    with dlw.from_dlpack(array, **wish) as tensor:
        assert address(tensor) == array.data_ptr()
    assert len(asked) == 1


def test_complex_tensors_are_asked_of_dlpack(asked):
    array = torch.tensor([1 + 2j, 3 - 4j])
    with dlw.from_dlpack(array) as tensor:
        assert address(tensor) == array.data_ptr()
    assert len(asked) == 1


def test_conjugated_view_is_refused():
    """Its C functions would hand it out as it was before."""
    view = torch.tensor([1 + 2j, 3 - 4j]).conj()
    with pytest.raises(BufferError, match="conjugate"):
        dlw.from_dlpack(view)
    with dlw.from_dlpack(view.resolve_conj()) as tensor:
        assert tensor.numpy().tolist() == [1 - 2j, 3 + 4j]


@pytest.mark.parametrize("options", [{}, {"copy": True}, {"copy": False}], ids=str)
def test_negated_view_is_refused(options):
    """PyTorch's own exports leave the negation out."""
    z = torch.tensor([[1 + 2j, 3 - 4j], [5 + 6j, 7 + 8j]])
    for view in (z.conj().imag, z.conj().imag[0], z.conj().imag[0, 1], z.conj().imag.T):
        assert view.is_neg()
        with pytest.raises(
            BufferError, match=r"negated lazily, .* use x\.resolve_neg\("
        ):
            dlw.from_dlpack(view, **options)
        with dlw.from_dlpack(view.resolve_neg()) as tensor:
            assert tensor.numpy().tolist() == view.tolist()
    with dlw.from_dlpack(z.imag) as tensor:
        assert tensor.numpy().tolist() == z.imag.tolist()


def test_subclasses_and_views_are_shared():
    class Mine(torch.Tensor):
        pass

    base = torch.arange(24.0).reshape(4, 6)
    for array in (base.as_subclass(Mine), base.T, base[1:, ::2], base.expand(2, 4, 6)):
        with dlw.from_dlpack(array) as tensor:
            assert tensor.strides == tuple(array.stride())
            assert address(tensor) == array.data_ptr()
            np.testing.assert_array_equal(tensor.numpy(), np.asarray(array))


def test_parameters_are_shared():
    """As the exchange API has them; their __dlpack__ would refuse."""
    array = torch.nn.Parameter(torch.zeros(3))
    with dlw.from_dlpack(array) as tensor:
        tensor.numpy()[1] = 5
    assert array.tolist() == [0, 5, 0]
    assert array.requires_grad


def test_read_only_wrapper_is_read_only():
    array = torch.ones(3)
    wrapper = torch.utils.dlpack.ReadOnlyTensorWrapper(array)
    for keywords in ({}, {"copy": False}):
        with dlw.from_dlpack(wrapper, **keywords) as tensor:
            assert tensor.read_only
            assert address(tensor) == array.data_ptr()


def test_tensors_without_memory_are_refused():
    for array in (torch.eye(3).to_sparse(), torch.empty(2, device="meta")):
        with pytest.raises((BufferError, RuntimeError)):
            dlw.from_dlpack(array)


@pytest.mark.parametrize("take", [torch.as_tensor, torch.asarray])
def test_constructors_share_too(take):
    values = np.arange(3.0)
    with dlw.from_dlpack(values) as tensor:
        assert take(tensor).data_ptr() == values.ctypes.data
