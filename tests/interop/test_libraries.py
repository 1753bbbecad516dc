"""The libraries of Python that take arrays: ours as ndarrays, and theirs told what to do."""

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


# --- pandas, polars -------------------------------------------------------------------------


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


def test_pandas_takes_matrices_and_computes(t, matrix):
    pd = wanted("pandas")
    frame = pd.DataFrame(matrix, columns=list("abc"))
    assert frame.dtypes.tolist() == [np.float64] * 3
    assert (pd.Series(A) + t).tolist() == (2 * A).tolist()
    assert pd.Series(t, dtype="float32").dtype == np.float32
    assert pd.Series(t.dtype).tolist() == ["float64"]
    assert pd.api.types.is_float_dtype(t.dtype)
    with pytest.raises(ValueError, match="1-dimensional"):
        pd.Series(matrix)


def test_polars_takes_columns_and_ndarrays(t, matrix):
    """By Arrow's protocol (test_arrow.py); what is no column, it refuses at once."""
    pl = wanted("polars")
    for use in (lambda x: pl.Series("a", x), lambda x: pl.DataFrame({"a": x})["a"]):
        for x in (t, t.numpy()):
            assert use(x).to_list() == t.numpy().tolist()
    for use in (pl.DataFrame, pl.lit):
        with pytest.raises(
            (TypeError, pl.exceptions.SchemaError), match=r"Tensor|Struct"
        ):
            use(t)
        assert use(t.numpy()) is not None
    with pytest.raises(AttributeError, match=r"t\.numpy\(\)\.dtype\.names"):
        pl.from_numpy(matrix)
    assert pl.Series("a", t.numpy()).dtype == pl.Float64


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


@pytest.fixture
def plot():
    matplotlib = wanted("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_matplotlib_plots(plot, t, matrix):
    (line,) = plot.plot(t)
    assert line.get_ydata().tolist() == A.tolist()
    assert len(plot.plot(t, t)) == 1
    assert len(plot.plot(matrix)) == 3
    assert plot.hist(t, bins=3)[0].tolist() == [2, 2, 2]
    assert plot.scatter(t, t, c=t, s=t).get_offsets().shape == (6, 2)
    assert len(plot.bar(t, t)) == 6
    for draw in (plot.fill_between, plot.errorbar, plot.step, plot.stackplot):
        draw(t, t)
    for draw in (plot.boxplot, plot.violinplot, plot.eventplot):
        draw(t)
    plot.contourf(matrix)
    plot.gcf().canvas.draw()


@pytest.mark.parametrize("name", ["L", "RGB strided", "RGBA", "F"])
def test_matplotlib_shows_images(plot, name):
    with dlw.from_dlpack(IMAGES[name]) as t:
        shown = plot.imshow(t).get_array()
        plot.imsave("/dev/null", t, format="png")
    np.testing.assert_array_equal(shown, IMAGES[name])
    plot.gcf().canvas.draw()


# --- science --------------------------------------------------------------------------------


def test_scipy_computes(t, matrix):
    sparse, fft = wanted("scipy.sparse", "scipy"), wanted("scipy.fft", "scipy")
    linalg, signal = wanted("scipy.linalg", "scipy"), wanted("scipy.signal", "scipy")
    for kind in (sparse.csr_array, sparse.coo_array, sparse.csr_matrix):
        assert kind(matrix).toarray().tolist() == matrix.numpy().tolist()
    assert (sparse.csr_array(np.eye(6)) @ t).tolist() == A.tolist()
    np.testing.assert_array_equal(fft.fft(t), fft.fft(A))
    np.testing.assert_array_equal(fft.fft(t[::2]), fft.fft(A[::2]))
    with t.to_device("cpu", dtype="float32") as narrow:
        assert fft.fft(narrow).dtype == np.complex64
    assert linalg.svdvals(matrix).shape == (2,)
    assert signal.convolve(t, t).tolist() == np.convolve(A, A).tolist()


def test_scipys_sparse_arrays_name_toarray():
    sparse = wanted("scipy.sparse", "scipy")
    for use, error in ((dlw.from_dlpack, AttributeError), (dlw.from_buffer, TypeError)):
        with pytest.raises(error, match=r"csr_array.*use x\.toarray\(\)"):
            use(sparse.csr_array(np.eye(3)))


def test_scikit_learn_fits():
    linear = wanted("sklearn.linear_model", "scikit-learn")
    cluster = wanted("sklearn.cluster", "scikit-learn")
    selection = wanted("sklearn.model_selection", "scikit-learn")
    random = np.random.default_rng(0)
    values, target = random.normal(size=(20, 3)), random.normal(size=20)
    with dlw.from_dlpack(values) as x, dlw.from_dlpack(target) as y:
        fitted = linear.LinearRegression().fit(x, y)
        expected = linear.LinearRegression().fit(values, target)
        np.testing.assert_array_equal(fitted.predict(x), expected.predict(values))
        assert cluster.KMeans(2, n_init=1).fit(x).labels_.shape == (20,)
        with pytest.raises(TypeError, match=r"t\.numpy\(\)\["):  # it picks rows
            selection.train_test_split(x, y)
        selection.train_test_split(x.numpy(), y.numpy())


def test_scikit_learn_keeps_float32():
    linear = wanted("sklearn.linear_model", "scikit-learn")
    values = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    with dlw.from_dlpack(values) as x, dlw.from_dlpack(values[:, 0]) as y:
        assert linear.Ridge().fit(x, y).coef_.dtype == np.float32


@pytest.fixture(scope="module")
def xr():
    module = wanted("xarray")
    module.DataArray(A)  # keeps the frames in which it first looks for other libraries
    return module


def test_xarray_takes_tensors(xr, t, matrix):
    assert isinstance(xr.DataArray(t).data, np.ndarray)
    assert float(xr.DataArray(matrix, dims=("x", "y")).mean()) == 2.5
    dataset = xr.Dataset({"a": ("x", t)}, coords={"x": t})
    assert (dataset.a + t).values.tolist() == (2 * A).tolist()


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
