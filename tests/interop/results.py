"""The table of who works how, from what the tests saw."""

import platform
import sys
from importlib import metadata

SUMMARY = (
    "to dlpack-web",
    "from dlpack-web",
    "read-only tensor",
    "copy=True of ours",
    "copy=True of theirs",
    "WebGPU handle",
)
NOT_RUN = "not run"
EXTENSION = "ml_dtypes"  # no framework, but dtypes for NumPy
HEAD = """\
# Interoperability

Written by `make interop`: each cell is what its tests saw with CPython {python} on
{system}. "Shared" is the same address, with writes seen on both sides; "not run" is a
framework that was not installed.

"""


class Results:
    """Notes of the tests by framework, and the document made of them."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.notes = {}  # (framework's title, table, row) -> text
        self.rows = {"summary": list(SUMMARY)}

    def note(self, framework, table, row, text):
        """In `table`, text is what was seen of `framework` in `row`."""
        if framework.title == EXTENSION:
            self.notes[EXTENSION, table, row] = text
            return
        rows = self.rows.setdefault(table, [])
        if row not in rows:
            rows.append(row)
        self.notes[framework.title, table, row] = text

    def markdown(self):
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        system = f"{platform.system()} {platform.machine()}"
        parts = [HEAD.format(python=python, system=system), self._summary()]
        shared = [row for title, _, row in self.notes if title == EXTENSION]
        if shared:
            version = metadata.version(EXTENSION)
            parts.append(
                f"\nArrays of {EXTENSION} {version} are shared both ways, in "
                f"{len(shared)} dtypes: {', '.join(shared)}.\n"
            )
        parts += [
            f"\n## {table}\n\n" + self._table(table)
            for table in self.rows
            if table != "summary"
        ]
        return "".join(parts)

    def _text(self, kind, table, row):
        return self.notes.get((kind.title, table, row), NOT_RUN)

    def _summary(self):
        """A line for each framework."""
        lines = [("framework", "version", *SUMMARY)]
        for kind in self.kinds:
            seen = [self._text(kind, "summary", row) for row in SUMMARY]
            ran = any(text != NOT_RUN for text in seen)
            version = metadata.version(kind.distribution) if ran else NOT_RUN
            lines.append((kind.title, version, *seen))
        return _markdown(lines)

    def _table(self, table):
        """A column for each framework."""
        lines = [("", *(kind.title for kind in self.kinds))]
        for row in self.rows[table]:
            lines.append((row, *(self._text(kind, table, row) for kind in self.kinds)))
        return _markdown(lines)


def _markdown(lines):
    head, *rest = ("| " + " | ".join(line) + " |\n" for line in lines)
    return head + "|---" * len(lines[0]) + "|\n" + "".join(rest)
