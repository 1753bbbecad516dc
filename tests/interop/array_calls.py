"""Natural calls of Python's libraries with a Tensor where they want an array.

Each gives the same as with the ndarray, or an error: never another result. `SAME`, or what
the error says; `WAY` where the words are ours. tests/interop/test_as_an_array.py runs them
natively, tests/browser/array_libraries.py those of Pyodide's packages in a page.
"""

import functools
import importlib
import io
import re

import numpy as np
import pytest

import dlpack_web as dlw

SAME = "the same"
WAY = r"t\.numpy\(\)|np\.asarray\(t\)"
_NOT_MASK = (
    r"None of \[.*\] are in the \[index\]"  # pandas' words for a mask it does not know
)

VALUES = {
    "t": np.arange(1, 7.0),
    "m": np.arange(6.0).reshape(2, 3),
    "f": np.arange(6, dtype="float32"),
    "i": np.array([2, 0, 1]),
    "mask": np.array([1, 0, 1, 0, 0, 1], bool),
    "s": np.array(3),
    "z": np.arange(3) + 1j,
    "pixels": np.arange(60, dtype="uint8").reshape(4, 5, 3),
}

# By what is imported: (names of modules beside it, expressions and what comes of them).
CALLS = {
    "builtins": {
        "sum(t)": WAY,
        "sorted(t)": WAY,
        "list(map(float, t))": SAME,
        "1.0 in set(t), 9.0 in set(t)": SAME,
        "[bool(t[0] == each) for each in (1, 1.0, True, 2)]": SAME,
        "list(t).index(2.0)": SAME,
        "[10, 20, 30, 40, 50][s]": SAME,
        "int(s), float(s), bool(s), list(range(s))": SAME,
        "f'{s:5.2f}'": SAME,
        "b''.join([pixels])": SAME,
        "len(m), len(t)": SAME,
        "1.0 in t": WAY,
        "s in [1, 2, 3]": SAME,
        "(0.0, 1.0, 2.0) in set(m)": WAY,
        "hash(t)": WAY,
        "t == 3": WAY,
        "t + 1": WAY,
        "~mask": WAY,
        "1 if t else 2": WAY,
        "t[mask]": WAY,
        "t[i]": WAY,
        "t[np.array([True] * 6)]": WAY,
        "t.tolist()": WAY,
        "t.astype('float32')": WAY,
    },
    "numpy": {
        "np.arange(10.0)[i]": SAME,
        "np.arange(6.0)[mask]": SAME,
        "np.arange(6.0).reshape(2, 3)[:, i]": SAME,
        "np.arange(10.0)[s]": SAME,
        "np.asarray(i).dtype.type, np.asarray(i)[0].__class__": SAME,
        "np.where(mask, t, 0), np.nonzero(mask)": SAME,
        "np.take(np.arange(10.0), i), np.compress(mask, t)": SAME,
        "np.select([mask], [t])": SAME,
        "np.isin([1.0, 9.0], t), np.unique(t)": SAME,
        "np.interp(t, t, t), np.histogram(t)": SAME,
        "np.linspace(s, 10, 4), np.zeros(s), np.zeros(i), np.full(3, s)": SAME,
        "np.array([s, s]), np.array([t, t]), np.array([s, 1])": SAME,
        "np.concatenate([t, t]), np.vstack([m, m])": SAME,
        "np.random.default_rng(0).choice(t, 3)": SAME,
        "np.random.default_rng(0).permutation(t)": SAME,
        "np.vectorize(lambda v: v * 2)(t)": SAME,
        "np.ix_(i, i)": SAME,
        "np.linalg.svd(m)[1], np.cross(m, m)": SAME,
        "np.repeat(t, i[:1]), np.roll(t, 1), np.pad(t, 2)": SAME,
        "np.real(z), np.imag(z), np.angle(z)": SAME,
        "np.isrealobj(t), np.iscomplexobj(z)": SAME,
        "t.dtype.type, t.dtype.kind, t.dtype.itemsize, np.dtype(t.dtype)": SAME,
        "issubclass(t.dtype.type, np.floating)": SAME,
        "np.issubdtype(t.dtype, np.floating), np.finfo(f.dtype).eps": SAME,
        "np.promote_types(t.dtype, 'int8'), np.empty(0, t.dtype)": SAME,
        "np.sum(m, axis=s[None][0] - 3 if type(s) is np.ndarray else 0)": SAME,
        "saved(np.save, t)": SAME,
        "np.add.reduce(t), np.add(t, 1), np.arange(6.0) + t": SAME,
        "np.copyto(np.zeros(6), t), np.broadcast_to(t, (2, 6))": SAME,
        "np.arange(s)": WAY,
        "np.tile(t, s)": WAY,
        "np.random.default_rng(0).shuffle(t)": WAY,
    },
    "scipy": {
        "sp.signal.convolve(t, t), sp.signal.find_peaks(t)[0]": SAME,
        "sp.fft.fft(t), sp.fft.fft(f).dtype": SAME,
        "sp.linalg.norm(m), sp.linalg.svd(m)[1]": SAME,
        "sp.sparse.csr_array(m).toarray()": SAME,
        "sp.sparse.csr_array((t[:3], i, [0, 3]), shape=(1, 3)).toarray()": SAME,
        "sp.sparse.coo_array((t[:3], (i, i)), shape=(3, 3)).toarray()": SAME,
        "sp.sparse.eye(3).tocsr() @ t[:3]": SAME,
        "sp.sparse.eye(3).tocsr()[i].toarray()": SAME,
        "sp.interpolate.CubicSpline(t, t)(t)": SAME,
        "sp.stats.ttest_ind(t, t), sp.stats.zscore(t)": SAME,
        "sp.stats.gaussian_kde(t)(t)": SAME,
        "sp.ndimage.gaussian_filter(t, 1), sp.ndimage.label(mask)": SAME,
        "sp.spatial.KDTree(m).query(m), sp.spatial.distance.cdist(m, m)": SAME,
        "sp.optimize.minimize(lambda x: x @ x, t).success": SAME,
        "sp.optimize.nnls(m, t[:2]), sp.optimize.linear_sum_assignment(m)": SAME,
        "sp.integrate.simpson(t), sp.special.softmax(t)": SAME,
        "sp.sparse.eye(6).tocsr()[mask]": WAY,
        "sp.sparse.diags(t)": "number of diagonals and offsets",
    },
    "pandas": {
        "pd.Series([1.0, 2.0, 9.0]).isin(t)": SAME,
        "pd.DataFrame({'a': [1.0, 9.0]}).isin(t)": SAME,
        "pd.Series(t), pd.Index(t), pd.array(t)": SAME,
        "pd.Series(t, dtype='float32'), pd.Series(t).astype(f.dtype)": SAME,
        "pd.DataFrame(m), pd.DataFrame({'a': t, 'b': mask})": SAME,
        "pd.DataFrame.from_dict({'a': t}), pd.DataFrame.from_records(m)": SAME,
        "pd.Series(t)[i], pd.Series(t).iloc[i], pd.Series(t).loc[i]": SAME,
        "pd.Series(t).take(i), pd.Series(t).drop(i), pd.Series(t).reindex(i)": SAME,
        "pd.Series(t) + t, pd.Series(t) == t, pd.Series(t).dot(t)": SAME,
        "pd.Series(t).where(mask, t), pd.Series(t).clip(t)": SAME,
        "[*map(float, pd.Categorical(t))], [*map(float, pd.Series(list(t)))]": SAME,
        "pd.Series(list(t)).isin([1.0, 9.0]), pd.Series(list(t)).nunique()": SAME,
        "pd.MultiIndex.from_arrays([t, mask]).get_loc((2.0, False))": SAME,
        "pd.Index(list(t)).isin([1.0])": SAME,
        "pd.cut(t, 3), pd.cut(np.arange(6.0), t), pd.qcut(t, 2)": SAME,
        "pd.isna(t), pd.notna(t), pd.crosstab(mask, mask)": SAME,
        "pd.Series(t).searchsorted(t), pd.Index(t).get_indexer(t)": SAME,
        "pd.DataFrame({'a': t}).assign(b=t), pd.get_dummies(i)": SAME,
        "pd.DataFrame({'a': t, 'b': t}).pivot_table(index=mask)": SAME,
        "pd.api.types.is_float_dtype(t), pd.api.types.is_float_dtype(t.dtype)": SAME,
        "pd.api.types.is_list_like(t), pd.api.types.is_array_like(t)": SAME,
        "t + pd.Series(np.arange(6.0))": WAY,
        "pd.Series(t).mask(mask)": WAY,
        "pd.to_datetime(t)": WAY,
        "pd.Series(t)[mask]": _NOT_MASK,
        "pd.Series(t).loc[mask]": _NOT_MASK,
        "pd.DataFrame({'a': t})[mask]": r"None of \[.*\] are in the \[columns\]",
        "pd.Series(t).iloc[s]": "with a non-integer key",
        "pd.Series(t)[s]": "Tensor",
        "pd.unique(t)": "requires a Series, Index, .*np.ndarray.* got Tensor",
        "pd.factorize(t)": "requires a Series, Index, .*np.ndarray.* got Tensor",
        "pd.DataFrame({'a': t}).groupby(mask).sum()": "'Tensor' object is not callable",
        "pd.DataFrame({'a': t}).set_index(t)": "Received column of type .*Tensor",
    },
    "sklearn": {
        "lm.LinearRegression().fit(m, t[:2]).coef_": SAME,
        "lm.Ridge().fit(m, t[:2], sample_weight=t[:2]).coef_": SAME,
        "lm.LogisticRegression().fit(m, mask[:2]).coef_": SAME,
        "sk.cluster.KMeans(2, random_state=0, n_init=1).fit(m).labels_": SAME,
        "sk.preprocessing.StandardScaler().fit_transform(m)": SAME,
        "sk.preprocessing.LabelEncoder().fit_transform(i)": SAME,
        "sk.preprocessing.OneHotEncoder().fit_transform(m).toarray()": SAME,
        "sk.decomposition.PCA(1).fit(m).explained_variance_": SAME,
        "sk.neighbors.NearestNeighbors(n_neighbors=1).fit(m).kneighbors(m)": SAME,
        "sk.metrics.accuracy_score(mask, mask), sk.metrics.r2_score(t, t)": SAME,
        "sk.metrics.roc_auc_score(mask, t)": SAME,
        "sk.metrics.confusion_matrix(mask, mask)": SAME,
        "sk.utils.multiclass.unique_labels(i)": SAME,
        "sk.model_selection.train_test_split(m, random_state=0)": WAY,
        "sk.utils.shuffle(t, random_state=0)": WAY,
    },
    "xarray": {
        "xr.DataArray(t), xr.Variable('x', t).mean()": SAME,
        "xr.DataArray(m, dims=('x', 'y'), coords={'y': t[:3]})": SAME,
        "xr.DataArray(np.arange(6.0)) + t": SAME,
        "xr.DataArray(t)[i], xr.DataArray(t)[mask]": SAME,
        "xr.DataArray(t, dims='x').isel(x=i)": SAME,
        "xr.DataArray(t, dims='x').isel(x=s)": SAME,
        "xr.DataArray(t, dims='x', coords={'x': t}).sel(x=t[:2])": SAME,
        "xr.DataArray(t).isin(t), xr.DataArray(t).where(mask)": SAME,
        "xr.Dataset({'a': ('x', t)})": SAME,
        "t + xr.DataArray(np.arange(6.0))": WAY,
    },
    "dask": {
        "da.from_array(t).sum().compute(), da.asarray(t).compute()": SAME,
        "da.from_array(m, chunks=(1, 3)).T.compute()": SAME,
        "(da.arange(6) + t).compute(), da.dot(da.arange(6), t).compute()": SAME,
        "da.where(mask, t, 0).compute(), da.stack([t, t]).compute()": SAME,
        "da.isin(da.arange(6), t).compute()": SAME,
        "da.map_blocks(lambda x: x * 2, da.from_array(t)).compute()": SAME,
        "da.zeros(6, dtype=t.dtype).compute(), da.zeros_like(t).compute()": SAME,
        "da.arange(6)[i]": WAY,
        "da.arange(6)[mask]": WAY,
        "t + da.arange(6)": WAY,
    },
    "matplotlib": {
        "plt.plot(t, t, 'o')[0].get_xydata()": SAME,
        "plt.imshow(m).get_array(), plt.imshow(pixels).get_array()": SAME,
        "[bar.get_height() for bar in plt.bar(t, t)]": SAME,
        "plt.hist(t)[0], plt.hist2d(t, t)[0]": SAME,
        "plt.boxplot(t)['medians'][0].get_ydata()": SAME,
        "plt.boxplot(m)['medians'][2].get_ydata()": SAME,
        "plt.scatter(t, t, c=t, s=t).get_sizes()": SAME,
        "plt.fill_between(t, t, where=mask).get_paths()[0].vertices": SAME,
        "plt.contourf(m).levels, plt.contour(m, levels=t).levels": SAME,
        "plt.errorbar(t, t, yerr=t)[0].get_xydata()": SAME,
        "plt.xticks(t)": WAY,
        "plt.hlines(t, 0, 1).get_segments(), plt.eventplot(t)[0].get_positions()": SAME,
        "plt.stackplot(t, t)[0].get_paths()[0].vertices": SAME,
        "plt.get_cmap('viridis')(t)": SAME,
        "plt.axhline(s)": WAY,
        "plt.xlim(t[0], t[5])": WAY,
        "plt.plot(t, color=m[0])": "is not a valid value for color",
    },
    "PIL": {
        "np.asarray(Image.fromarray(pixels))": SAME,
        "np.asarray(Image.fromarray(pixels[..., 1]))": SAME,
        "np.asarray(Image.fromarray(mask.reshape((2, 3))))": SAME,
        "np.asarray(Image.fromarray(m, mode=None))": SAME,
        "np.asarray(Image.frombytes('RGB', (5, 4), pixels))": SAME,
        "np.asarray(Image.frombuffer('RGB', (5, 4), pixels, 'raw', 'RGB', 0, 1))": SAME,
        "Image.new('L', (s, s))": WAY,
    },
    "h5py": {
        "h5().create_dataset('a', data=t)[:]": SAME,
        "h5().create_dataset('a', data=m, chunks=True)[:]": SAME,
        "h5().create_dataset('a', data=m, dtype=f.dtype)[:]": SAME,
        "h5().create_dataset('a', (6,), t.dtype).dtype": SAME,
        "h5().create_dataset('a', data=mask)[np.sort(i)]": SAME,
        "h5().create_dataset('a', data=t)[s]": SAME,
        "put(h5().create_dataset('a', data=np.zeros(6)), ..., t)": SAME,
        "put(h5().attrs, 'x', t)": SAME,
        "h5().create_dataset('a', data=t)[mask]": "Use other code for boolean selection",
        "h5().create_dataset('a', data=t).write_direct(t)": "expected numpy.ndarray",
    },
    "zarr": {
        "zarr.array(t)[:], zarr.array(m, chunks=(1, 3))[:]": SAME,
        "zarr.create_array({}, data=t)[:]": SAME,
        "zarr.create_array({}, shape=(6,), dtype=t.dtype).dtype": SAME,
        "zarr.array(t)[mask], zarr.array(t)[i], zarr.array(t)[s]": SAME,
        "zarr.array(t).oindex[i], zarr.array(t).get_mask_selection(mask)": SAME,
        "put(zarr.array(np.zeros(6)), ..., t)": SAME,
        "zarr.full(3, fill_value=s)[:]": SAME,
        "zarr.zeros(i, dtype=f.dtype)": "Expected an iterable of integers. Got Tensor",
    },
    "polars": {
        "pl.Series('a', t).to_list(), pl.Series(mask).to_list()": SAME,
        "pl.DataFrame({'a': t, 'b': mask})": SAME,
        "pl.Series(list(t))": SAME,
        "pl.Series(np.arange(6.0)).is_in(t)": SAME,
        "pl.Series(np.arange(6.0)).filter(mask)": SAME,
        "pl.Series(t).head(s)": WAY,
        "pl.from_numpy(m)": WAY,
        "t + pl.Series(np.arange(6.0))": WAY,
        "pl.DataFrame(m)": "expected `Struct`",
        "pl.Series(np.arange(6.0)) + t": "cannot convert Python type .*Tensor",
        "pl.Series(np.arange(6.0)) == t": "cannot convert Python type .*Tensor",
        "pl.Series(np.arange(6.0))[i]": "cannot select elements using key .*Tensor",
        "pl.Series(np.arange(6.0))[mask]": "cannot select elements using key .*Tensor",
        "pl.Series(np.arange(6.0)).gather(i)": "cannot create expression literal",
        "pl.lit(t)": "cannot create expression literal",
        "pl.DataFrame({'a': t}).filter(mask)": "invalid predicate for `filter`",
        "pl.DataFrame({'a': t}).with_columns(b=t)": "cannot create expression literal",
    },
    "jax": {
        "jnp.asarray(t), jnp.array(t), jnp.array([t, t])": SAME,
        "jnp.zeros(3, t.dtype), jnp.zeros_like(t), jnp.zeros(i)": SAME,
        "jnp.issubdtype(t.dtype, jnp.floating)": SAME,
        "jnp.sum(t)": "is not a valid JAX type",
        "jnp.add(t, t)": "requires ndarray or scalar arguments",
        "jax.jit(lambda x: x * 2)(t)": "is not a valid JAX type",
        "jax.device_put(t)": "is not a valid JAX type",
        "jnp.arange(6.0) + t": WAY,
        "t + jnp.arange(6.0)": WAY,
        "jnp.arange(6.0) == t": WAY,
        "jnp.arange(6.0)[i]": "integer or boolean arrays are valid indices. Got Tensor",
        "jnp.arange(6.0)[mask]": "integer or boolean arrays are valid indices. Got Tensor",
        "jnp.where(mask, t, 0)": "requires ndarray or scalar arguments",
        "jax.lax.dynamic_slice(jnp.arange(6.0), (s,), (1,))": WAY,
    },
    "numba": {
        "added(t), added(f)": SAME,
        "doubled(t)": SAME,
    },
    "torch": {
        "torch.as_tensor(t), torch.asarray(t), torch.tensor(t)": SAME,
        "torch.from_dlpack(t), torch.tensor(s)": SAME,
        "torch.tensor(list(t))": WAY,
        "torch.tensor(pixels), torch.tensor(mask), torch.tensor(z)": SAME,
        "torch.frombuffer(t, dtype=torch.float64), torch.Tensor(t)": SAME,
        "torch.arange(6.0)[s]": WAY,
        "torch.arange(6.0)[i[:1]]": WAY,
        "torch.eye(3)[i[:2]]": WAY,
        "torch.eye(3)[:, i]": WAY,
        "torch.eye(3)[mask[:2]]": WAY,
        "torch.arange(6.0)[i]": "too many indices",
        "torch.arange(6.0)[mask]": "too many indices",
        "t[torch.tensor(True)]": WAY,
        "t[torch.tensor([2])]": WAY,
        "torch.arange(6.0) == t": WAY,
        "t == torch.arange(6.0)": WAY,
        "torch.arange(6.0) + t": WAY,
        "torch.from_numpy(t)": "expected np.ndarray .got Tensor",
        "torch.sum(t)": "must be Tensor",
        "torch.where(mask, t, 0)": "invalid combination of arguments",
        "torch.arange(6.0).copy_(t)": "must be Tensor",
        "torch.utils.data.default_collate([t, t])": "found <class 'dlpack_web.Tensor'>",
    },
}


def calls(library):
    """The expressions of a library and what comes of them: parameters of a test."""
    return CALLS[library].items()


def saved(write, x):
    file = io.BytesIO()
    write(file, x)
    return file.getvalue()


def put(target, key, x):
    target[key] = x
    return target[key]


@functools.cache
def modules(library):
    """The names that the expressions of a library use beside the values."""
    load = importlib.import_module
    names = {"np": np, "saved": saved, "put": put}
    if library == "scipy":
        parts = (
            "fft integrate interpolate linalg ndimage optimize signal sparse spatial"
        )
        for part in (*parts.split(), "special", "stats"):
            load(f"scipy.{part}")
        return names | {"sp": load("scipy")}
    if library == "sklearn":
        parts = "cluster decomposition metrics model_selection neighbors preprocessing"
        for part in (*parts.split(), "utils"):
            load(f"sklearn.{part}")
        return names | {"sk": load("sklearn"), "lm": load("sklearn.linear_model")}
    if library == "h5py":
        file = load("h5py").File
        names["h5"] = lambda: file("a", "w", driver="core", backing_store=False)
    if library == "numba":
        njit = load("numba").njit
        names["added"] = njit(_added)
        names["doubled"] = load("numba").vectorize(["float64(float64)"])(_doubled)
    if library == "xarray":  # keeps the frames in which it first looks for others
        load("xarray").DataArray(VALUES["t"])
    short = {"pandas": "pd", "xarray": "xr", "polars": "pl"}
    names[short.get(library, library)] = load(library)
    beside = {"dask": "da=dask.array", "jax": "jnp=jax.numpy", "PIL": "Image=PIL.Image"}
    if library == "matplotlib":
        load("matplotlib").use("agg")
        beside["matplotlib"] = "plt=matplotlib.pyplot"
    if library in beside:
        name, _, module = beside[library].partition("=")
        names[name] = load(module)
    return names


def _added(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total


def _doubled(x):
    return 2 * x


def seen(value):
    """What a person sees of a result, with all digits: ndarrays with their class and dtype."""
    if isinstance(value, (tuple, list)):
        return [seen(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return (type(value), value.dtype, value.dtype.char, value.shape, value.tolist())
    return re.sub(r" at 0x\w+", "", f"{type(value)} {value!r}")


def _tensors():
    return {name: dlw.from_dlpack(value.copy()) for name, value in VALUES.items()}


def run(modules, expression, expected):
    """AssertionError where a Tensor gives something else than the table says."""
    if expected == SAME:
        arrays = {name: value.copy() for name, value in VALUES.items()}
        wanted = seen(eval(expression, modules | arrays))
        found = eval(expression, modules | _tensors())
        assert not isinstance(found, dlw.Tensor)
        assert seen(found) == wanted
        return
    # Tables of errors by library would say less: each has classes of its own.
    with pytest.raises(Exception) as caught:  # noqa: PT011
        eval(expression, modules | _tensors())
    text = " ".join(str(caught.value).split())
    assert re.search(expected, text), f"{caught.typename}: {text}"
