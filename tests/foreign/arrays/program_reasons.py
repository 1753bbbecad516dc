"""Statements of programs that give something else with a Tensor, or an error without our words,
and why that stays."""

import ast

from program_steps import one_line

_REPR = (
    "matplotlib draws the same; the repr of what it draws shows the numbers as Tensors"
)
_DIAGONALS = (
    "SciPy counts diagonals by `np.isscalar`, which an element of a Tensor is not: its error says "
    "that the numbers differ; pass `np.asarray(t)`"
)
_MASK = (
    "pandas takes masks from its own classes, lists and ndarrays; any other key names columns: its "
    "error says that there is no such column; pass `np.asarray(t)`"
)
_HDF5_MASK = "h5py takes masks that are ndarrays: its error says that this is no mask; pass `np.asarray(t)`"
_NUMBA = (
    "Numba compiles for the buffer that a Tensor is, not for an array: its error names `buffer`; loops "
    "over elements compile, what makes arrays does not: pass `np.asarray(t)`"
)
_POLARS_NAME = (
    "polars ignores the name and the dtype for every object of another library that speaks Arrow: "
    "`pl.Series(t).alias(name).cast(dtype)`, `pl.DataFrame({name: t})`, or `np.asarray(t)`"
)
_POLARS_LITERAL = (
    "polars takes its own classes and ndarrays in expressions: its error names the class Tensor; pass "
    "`pl.Series(t)` or `np.asarray(t)`"
)
_ARROW_MASK = "pyarrow takes a mask with ndarrays and lists alone: its error says so; pass `np.asarray(t)`"
_ARROW_NAN = (
    "pyarrow looks for NaN in ndarrays alone, and ignores `from_pandas` for every object that "
    "brings Arrow arrays: pass `np.asarray(t)`"
)
_ARROW_ELEMENT = (
    "pyarrow infers no type from a Tensor within a list, or alone: its error names the class "
    "Tensor; pass `np.asarray(t)`"
)
_DUCKDB = (
    "DuckDB finds dicts of ndarrays by their name in SQL, and not dicts of Tensors: its error lists "
    "what it finds; pass `np.asarray(t)`, or `pa.table(columns)`"
)
_REGIONS = (
    "scikit-image computes a region's properties when they are asked for: the error, with our "
    "words, comes then; pass `np.asarray(labels)` to `regionprops`"
)

_REASONS = {
    (
        "duckdb_query",
        'connection.sql("SELECT sum(a * s) FROM columns").fetchall()',
    ): _DUCKDB,
    ("h5py_archive", 'masked = file["run/stamps"][flags]'): _HDF5_MASK,
    ("matplotlib_svg", 'steps.annotate("here", xy=(angles[3], radius[3]))'): _REPR,
    ("numba_loops", "inside = clipped(values, -1.0, 1.0)"): _NUMBA,
    ("numba_loops", "turned = mirrored(image)"): _NUMBA,
    ("numba_loops", "again = mirrored(kernels.scaled(image, 2))"): _NUMBA,
    ("numba_loops", "odd = clipped(values[::2], 0.0, 1.0)"): _NUMBA,
    ("numba_loops", "edges = around(image)"): _NUMBA,
    ("pandas_frames", "also = frame[valid]"): _MASK,
    ("polars_frames", 'named = pl.Series("values", values)'): _POLARS_NAME,
    ("polars_frames", "typed = pl.Series(ratios, dtype=pl.Float64)"): _POLARS_NAME,
    (
        "polars_frames",
        'wide = pl.DataFrame(matrix, schema=["a", "b", "c"])',
    ): _POLARS_LITERAL,
    ("polars_frames", "gathered = narrow.gather(values[:3])"): _POLARS_LITERAL,
    ("polars_frames", "shifted = series + values"): _POLARS_LITERAL,
    (
        "pyarrow_conversions",
        "missing = pa.array(numbers, mask=np.asarray(flags))",
    ): _ARROW_MASK,
    ("pyarrow_conversions", "also = pa.array(numbers, mask=flags)"): _ARROW_MASK,
    ("pyarrow_conversions", "unknown = pa.array(holes, from_pandas=True)"): _ARROW_NAN,
    ("pyarrow_conversions", "scalar = pa.scalar(numbers[3])"): _ARROW_ELEMENT,
    (
        "pyarrow_conversions",
        "nested = pa.array([matrix[0], matrix[1]])",
    ): _ARROW_ELEMENT,
    (
        "skimage_coins",
        "[(region.label, region.area, region.centroid) for region in regions]",
    ): _REGIONS,
    (
        "skimage_coins",
        "[round(region.eccentricity, 6) for region in regions]",
    ): _REGIONS,
    ("sparse_graph", "sparse.diags_array(goods).toarray().trace()"): _DIAGONALS,
}

#: By program and statement, as program_steps.py has it.
REASONS = {
    (name, one_line(ast.parse(source))): reason
    for (name, source), reason in _REASONS.items()
}
