"""The table of who works how, from what the tests saw."""

import json
import platform
import sys
from importlib import metadata

SUMMARY = (
    "to dlpack-web",
    "from dlpack-web",
    "there and back",
    "read-only tensor",
    "copy=True of ours",
    "copy=True of theirs",
    "WebGPU handle",
)
NOT_RUN = "not run"
EXTENSION = "ml_dtypes"  # no framework, but dtypes for NumPy
HEAD = """\
# Interoperability

Written by `make tables WHAT=interop`: each cell is the result of its tests with CPython {python} on
{system}; NumPy 1.26 and 2.0 with CPython 3.12. "Shared" is the same address, with writes
seen on both sides; "there and back" is a framework's own array through a tensor; "not run"
is a framework that was not installed.

"""


class Results:
    """Notes of the tests by framework, and the document made of them."""

    def __init__(self, kinds):
        self.kinds = {kind.title: kind.distribution for kind in kinds}
        self.versions = {}  # of frameworks that ran elsewhere
        self.notes = {}  # (framework's title, table, row) -> text
        self.rows = {"summary": list(SUMMARY)}

    def save(self, path):
        """What was seen, for another run's table."""
        ran = [title for title in self.kinds if self._ran(title)]
        versions = {title: metadata.version(self.kinds[title]) for title in ran}
        notes = [(*key, text) for key, text in self.notes.items() if key[0] in ran]
        path.write_text(json.dumps({"versions": versions, "notes": notes}), "utf-8")

    def add(self, path):
        """What another run saw: frameworks of their own, beside the first."""
        seen = json.loads(path.read_text("utf-8"))
        self.versions |= seen["versions"]
        first, *rest = self.kinds
        titles = [first, *seen["versions"], *rest]
        self.kinds = {title: self.kinds.get(title) for title in titles}
        for title, table, row, text in seen["notes"]:
            self.notes[title, table, row] = text

    def _ran(self, title):
        return any(key[0] == title for key in self.notes)

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

    def _text(self, title, table, row):
        return self.notes.get((title, table, row), NOT_RUN)

    def _version(self, title):
        if not self._ran(title):
            return NOT_RUN
        return self.versions.get(title) or metadata.version(self.kinds[title])

    def _summary(self):
        """A line for each framework."""
        lines = [("framework", "version", *SUMMARY)]
        for title in self.kinds:
            seen = (self._text(title, "summary", row) for row in SUMMARY)
            lines.append((title, self._version(title), *seen))
        return _markdown(lines)

    def _table(self, table):
        """A column for each framework."""
        lines = [("", *self.kinds)]
        for row in self.rows[table]:
            lines.append(
                (row, *(self._text(title, table, row) for title in self.kinds))
            )
        return _markdown(lines)


def _markdown(lines):
    head, *rest = ("| " + " | ".join(line) + " |\n" for line in lines)
    return head + "|---" * len(lines[0]) + "|\n" + "".join(rest)
