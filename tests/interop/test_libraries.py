"""The libraries of Python that take arrays: ours as ndarrays, and theirs told what to do.

array_calls.py has the calls that give the same with a Tensor, or an error."""

import gc

import numpy as np
import pytest

import dlpack_web as dlw

A = np.arange(6.0)
NUMBERS = ["bool", "int8", "uint8", "int32", "int64", "uint64", "float32", "float64"]


def wanted(name, distribution=None):
    return pytest.importorskip(name, reason=f"{distribution or name} is not installed")


@pytest.fixture
def t():
    with dlw.from_dlpack(np.arange(6.0)) as tensor:
        yield tensor
    gc.collect()  # figures and estimators refer to themselves


@pytest.fixture
def matrix():
    with dlw.from_dlpack(np.arange(6.0).reshape(2, 3)) as tensor:
        yield tensor


# --- pandas ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_pandas_columns_are_numbers(dtype):
    pd = wanted("pandas")
    array = np.arange(6).astype(dtype)
    for values in (array, array[::2]):
        with dlw.from_dlpack(values) as t:
            frame = pd.DataFrame({"a": t}).assign(b=t)
            frame["c"] = t
            for column in (pd.Series(t), pd.Index(t), *(frame[name] for name in "abc")):
                assert column.dtype == dtype
                assert column.tolist() == values.tolist()


# --- pictures -------------------------------------------------------------------------------

PIXELS = np.random.default_rng(0).integers(0, 256, (20, 12, 4), np.uint8)
IMAGES = {
    "L": PIXELS[..., 0].copy(),
    "L strided": PIXELS[..., 1],
    "L transposed": PIXELS[..., 2].T,
    "RGB": PIXELS[..., :3].copy(),
    "RGB strided": PIXELS[::2, ::-1, :3],
    "RGBA": PIXELS,
    "RGBA strided": PIXELS[::-1, 1::2],
    "1": PIXELS[..., 0] > 128,
    "F": PIXELS[..., 0].astype("float32"),
    "I": PIXELS[..., 0].astype("int32"),
    "I;16": PIXELS[..., 0].astype("uint16"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_pillow_makes_images(name):
    image = wanted("PIL.Image", "pillow")
    pixels = IMAGES[name]
    with dlw.from_dlpack(pixels) as t:
        made = image.fromarray(t)
    assert (made.mode, made.size) == (name.split()[0], pixels.shape[1::-1])
    np.testing.assert_array_equal(np.asarray(made), pixels)


def test_pillow_shares_what_it_can():
    image = wanted("PIL.Image", "pillow")
    pixels = PIXELS.copy()
    with dlw.from_dlpack(pixels) as t:
        made = image.fromarray(t)
    pixels[0, 0] = 77
    assert made.getpixel((0, 0)) == (77, 77, 77, 77)


def test_kornia_shares_images_both_ways():
    image = wanted("kornia_rs", "kornia-rs").image.Image
    pixels = np.ascontiguousarray(PIXELS[..., :3])
    with dlw.from_dlpack(pixels) as t:
        made = image.from_dlpack(t)
    assert np.asarray(made).ctypes.data == pixels.ctypes.data
    with dlw.from_dlpack(made) as again:
        assert (again.shape, again.dtype) == (pixels.shape, "uint8")
        assert np.shares_memory(again.numpy(), pixels)
    with dlw.from_dlpack(image.fromarray(pixels)) as t:
        assert np.shares_memory(t.numpy(), pixels)


# --- science --------------------------------------------------------------------------------


def test_scipys_sparse_arrays_name_toarray():
    sparse = wanted("scipy.sparse", "scipy")
    for use, error in ((dlw.from_dlpack, AttributeError), (dlw.from_buffer, TypeError)):
        with pytest.raises(error, match=r"csr_array.*use x\.toarray\(\)"):
            use(sparse.csr_array(np.eye(3)))


def test_awkward_takes_tensors(t, matrix):
    ak = wanted("awkward")
    for make in (ak.Array, ak.from_dlpack):
        assert make(t).tolist() == A.tolist()
        assert make(t[::2]).tolist() == A[::2].tolist()
    assert ak.Array(matrix).tolist() == matrix.numpy().tolist()
    assert ak.zip({"x": t}).x.tolist() == A.tolist()
    assert ak.sum(t) == 15


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn", "int4"])
def test_jax_makes_arrays_of_tensors(name):
    jnp = wanted("jax.numpy", "jax")
    ml_dtypes = wanted("ml_dtypes")
    dtype = getattr(ml_dtypes, name, name)
    values = np.array([[1, 2, -3], [0, 1, -1]]).astype(dtype)
    with dlw.from_dlpack(values) as t:
        for make in (jnp.asarray, jnp.array):
            array = make(t)
            assert array.dtype == name
            assert array.astype(float).tolist() == values.astype(float).tolist()
        assert jnp.zeros(3, t.dtype).dtype == name
        with pytest.raises(TypeError, match="Tensor"):
            jnp.add(t, 1)  # JAX's functions take nothing that is not one of its arrays


def test_safetensors_takes_dtypes_and_ndarrays(t):
    safetensors = wanted("safetensors")
    numpy = wanted("safetensors.numpy", "safetensors")
    spec = safetensors.TensorSpec(
        dtype=t.dtype,
        shape=t.shape,
        data_ptr=t.numpy().ctypes.data,
        data_len=t.nbytes,
    )
    for saved in (safetensors.serialize({"a": spec}), numpy.save({"a": t.numpy()})):
        assert numpy.load(bytes(saved))["a"].tolist() == A.tolist()
    with pytest.raises(AttributeError, match=r"use t\.numpy\(\)\.dtype\.byteorder"):
        numpy.save({"a": t})


# --- the other way --------------------------------------------------------------------------

THEIRS = {
    "pandas.Series": lambda lib: lib.Series(A),
    "pandas.DataFrame": lambda lib: lib.DataFrame({"a": A}),
    "pandas.Index": lambda lib: lib.Index(A),
    "polars.Series": lambda lib: lib.Series("a", A),
    "polars.DataFrame": lambda lib: lib.DataFrame({"a": A}),
    "xarray.DataArray": lambda lib: lib.DataArray(A),
    "awkward.Array": lambda lib: lib.Array(A),
    "PIL.Image": lambda lib: lib.fromarray(IMAGES["RGB"]),
}


@pytest.mark.parametrize("name", THEIRS)
def test_their_arrays_name_asarray(name):
    """One line that says it, and asarray does it."""
    module = name if name == "PIL.Image" else name.split(".")[0]
    x = THEIRS[name](wanted(module))
    uses = [(dlw.from_dlpack, AttributeError), (dlw.from_buffer, TypeError)]
    for use, error in (*uses, (lambda x: dlw.empty(6).write(x), TypeError)):
        with pytest.raises(error, match=r"^cannot share an? .*np\.asarray\(x\)$"):
            use(x)
    array = np.asarray(x)
    with dlw.from_dlpack(array) as t:
        assert t.shape == array.shape
        assert np.shares_memory(t.numpy(), array)
