"""Names that a parameter of a formula cannot have."""

import re

from . import OURS, PREDECLARED, RESERVED

_DECLARED = re.compile("|".join(PREDECLARED), re.ASCII)


def reason_against(name: str, raw: bool, more: frozenset[str]) -> str | None:
    """Why a parameter cannot have a name: "it is …"; None if it can. raw: a raw parameter
    is a variable of the module, and would take the place of what WGSL declares; others are
    variables of a function."""
    if name in RESERVED:
        return "reserved in WGSL"
    if name.startswith("_") or name in OURS or name in more:
        return "reserved"
    return "declared by WGSL itself" if raw and _DECLARED.fullmatch(name) else None
