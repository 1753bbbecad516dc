"""Text of messages: types and values, and Python's names for JavaScript's."""

#: JavaScript's names in messages, as regular expressions, and Python's.
IN_PYTHON = {
    r"requestDevice\(\{ (\S+): (\S+) \}\)": r"request_device(\1=\2)",
    r"\bcheck: false\b": "check=False",
    r"\bconvert: true\b": "convert=True",
}
# Characters of a message with foreign text, at most.
MOST = 2000


def type_of(x: object) -> str:
    """The type of a value with its article: "a list", "an ndarray"; of an awaitable also
    what to do."""
    name = type(x).__qualname__
    spoken = name.startswith("nd") or name[0] in "AEIOUaeiou"  # "n" is pronounced "en"
    hint = " (await it)" if is_awaitable(x) else ""
    return f"{'an' if spoken else 'a'} {name}{hint}"


def is_awaitable(x: object) -> bool:
    """Whether a value is still to be awaited; Dask's arrays are arrays, too."""
    return hasattr(type(x), "__await__") and not hasattr(x, "shape")


def shown(given: object, most: int = 100) -> str:
    """The repr of a foreign value, cut before it is made: at most so many characters."""
    if isinstance(given, str | bytes):
        given = given[:most]
    elif isinstance(given, list | tuple | dict | set | frozenset):
        return f"a {type(given).__name__} of {len(given)}"
    return f"{given!r:.{most}}"


def bounded(message: str) -> str:
    """A message of at most MOST characters."""
    return message if len(message) <= MOST else f"{message[: MOST - 1]}…"
