"""Words shared by messages."""


def type_of(x: object) -> str:
    """The type of a value with its article: "a list", "an ndarray"."""
    name = type(x).__qualname__
    spoken = name.startswith("nd") or name[0] in "AEIOUaeiou"  # "n" is pronounced "en"
    return f"{'an' if spoken else 'a'} {name}"
