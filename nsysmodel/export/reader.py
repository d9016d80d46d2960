"""Tables as columns that are always there, names as categories, and a list of what was wrong.

Every frame is made of these few steps; each leaves a diagnostic where it had to give something up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.errors import ExportError
from nsysmodel.export.source import NULL, Kind, Rows, Source
from nsysmodel.result_export import Diagnostic, Severity

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Mask = np.ndarray[Any, np.dtype[np.bool_]]

_LATEST_NS = 4 * 10**18
"""Year 2096 as nanoseconds since 1970; exports with normalised time hold such numbers."""

_LONGEST_NS = 30 * 24 * 3600 * 10**9
"""Thirty days. Nothing real lasts longer, and sums of such durations stay within 64 bits."""

_AT_ONCE = 1 << 16
"""Rows that are looked at at once: what is made of them fits into a cache."""

PROCESS_MASK = ~0xFFFFFF


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column to read. `always` marks those that every generation of exports has."""

    name: str
    kind: Kind = "int"
    always: bool = False


def ints(*names: str, always: Iterable[str] = ()) -> tuple[Wanted, ...]:
    """Integer columns, optional ones first named, then those that every export has."""
    return (*(Wanted(name, always=True) for name in always), *(Wanted(name) for name in names))


class Reader:
    """Reads tables of a source and remembers what was wrong with them."""

    def __init__(self, source: Source, name: str) -> None:
        self.source = source
        self.name = name
        self.notes: list[Diagnostic] = []
        self._strings: dict[int, str] | None = None

    def note(self, code: str, severity: Severity, message: str, hint: str = "") -> None:
        """Remember a diagnostic, once."""
        diagnostic = Diagnostic(code, severity, message, hint)
        if diagnostic not in self.notes:
            self.notes.append(diagnostic)

    def rows(self, table: str, wanted: Iterable[Wanted]) -> tuple[Rows, int]:
        """The wanted columns, filled with `NULL`, None or NaN where absent, and the number of rows.

        A damaged table gives no rows and an error among the notes.
        """
        columns = tuple(wanted)
        try:
            rows = self.source.read(table, {column.name: column.kind for column in columns})
        except ExportError as error:
            self.note("table_damaged", "error", error.message, error.hint)
            rows = {}
        if not rows:
            return {c.name: _filled(0, c.kind) for c in columns}, 0
        length = len(next(iter(rows.values())))
        missing = [c.name for c in columns if c.always and c.name not in rows]
        if missing and length:
            self.note(
                "column_absent",
                "warning",
                f"{table} has no column {', '.join(missing)}.",
                "Export again with a stock nsys export; the table was altered.",
            )
        return {c.name: rows.get(c.name, _filled(length, c.kind)) for c in columns}, length

    def names(self, ids: Ints, missing: str | None = None) -> pd.Categorical:
        """Texts of string ids. An id without text is `<string 7>`; NULL is `missing`."""
        codes, uniques = factorized(ids)
        strings = self.strings()
        texts = [missing if i == NULL else strings.get(i, f"<string {i}>") for i in uniques.tolist()]
        dangling = sum(1 for i in uniques.tolist() if i != NULL and i not in strings)
        if dangling:
            self.note(
                "names_missing",
                "warning",
                f"{dangling} names are not in the export; they are shown as <string N>.",
                "Export the whole report: a filtered export (--tables) leaves StringIds out.",
            )
        return categories(codes, texts)

    def strings(self) -> dict[int, str]:
        """StringIds as a dictionary, read once."""
        if self._strings is None:
            rows, _ = self.rows(
                "StringIds", (Wanted("id", always=True), Wanted("value", "text", always=True))
            )
            pairs = zip(rows["id"].tolist(), rows["value"].tolist(), strict=True)
            self._strings = {i: text for i, text in pairs if text is not None}
        return self._strings

    def sound(self, rows: Rows, what: str) -> Mask:
        """Which rows have possible times; those left out are counted among the notes."""
        import numpy as np

        start, end = rows["start"], rows["end"]
        low, high = -_LATEST_NS, _LATEST_NS
        if len(start) and all_sound(start, end):
            return np.ones(len(start), dtype=bool)
        possible = (start > low) & (start < high) & (end > low) & (end < high)
        reversed_ = possible & (end < start)
        zero = (start == 0) & (end == 0)
        too_long = possible & ~reversed_ & (end - start > _LONGEST_NS)
        for mask, why in (
            (~possible, "without a possible start or end"),
            (reversed_, "that end before they start"),
            (zero, "with start and end 0 (not collected)"),
            (too_long, "longer than 30 days"),
        ):
            if count := int(mask.sum()):
                self.note(
                    "rows_dropped",
                    "warning",
                    f"{count} {what} {why} were left out.",
                    "Times like these come from lost events or a damaged file; capture again.",
                )
        kept: Mask = possible & ~reversed_ & ~zero & ~too_long
        return kept


def all_sound(start: Ints, end: Ints) -> bool:
    """Whether every row has possible times that were collected, which few passes tell."""
    for low in range(0, len(start), _AT_ONCE):
        first, last = start[low : low + _AT_ONCE], end[low : low + _AT_ONCE]
        if int(first.min()) <= 0 or int(last.max()) >= _LATEST_NS:
            return False
        length = last - first
        if int(length.min()) < 0 or int(length.max()) > _LONGEST_NS:
            return False
    return True


def _filled(length: int, kind: Kind) -> np.ndarray[Any, Any]:
    import numpy as np

    if kind == "int":
        return np.broadcast_to(np.int64(NULL), length)
    if kind == "real":
        return np.full(length, np.nan)
    return np.full(length, None, dtype=object)


def categories(codes: np.ndarray[Any, Any], texts: list[str | None]) -> pd.Categorical:
    """A categorical from codes into `texts`, which may repeat or hold None (missing)."""
    import numpy as np
    import pandas as pd

    position: dict[str, int] = {}
    remap = np.empty(len(texts) + 1, dtype=np.int64)
    for i, text in enumerate(texts):
        remap[i] = -1 if text is None else position.setdefault(text, len(position))
    remap[-1] = -1
    narrow = np.int8 if len(position) < 128 else np.int16 if len(position) < 32768 else np.int64
    return pd.Categorical.from_codes(
        remap.astype(narrow)[codes], categories=pd.Index(list(position), dtype=object)
    )


def coded(values: Ints, table: Mapping[int, str], unknown: str) -> pd.Categorical:
    """Names of small codes; a code outside `table` becomes `<unknown 14>`, NULL is missing."""
    codes, uniques = factorized(values)
    texts = [None if i == NULL else table.get(i, f"<{unknown} {i}>") for i in uniques.tolist()]
    return categories(codes, texts)


def text_categories(values: np.ndarray[Any, Any], missing: str | None = None) -> pd.Categorical:
    """An object array of texts as a categorical."""
    import pandas as pd

    codes, uniques = pd.factorize(values)
    codes[codes < 0] = len(uniques)
    return categories(codes, [*(str(text) for text in uniques), missing])


def is_one(values: np.ndarray[Any, Any]) -> bool:
    """True for a column of stride 0: one value in all rows; see `nsysmodel.export.source`."""
    return len(values) > 0 and values.strides == (0,)


def factorized(values: Ints) -> tuple[Ints, Ints]:
    """Codes from 0 and the values that they stand for."""
    import numpy as np
    import pandas as pd

    from nsysmodel.grouping import numbered

    if is_one(values):
        return np.broadcast_to(np.int64(0), len(values)), values[:1]
    if len(values) and int(values.min()) >= 0:
        return numbered(values, int(values.max()) + 1)
    codes, uniques = pd.factorize(values)
    return codes, np.asarray(uniques)


def each(values: Ints, make: Callable[[Ints], Ints]) -> Ints:
    """`make(values)`, computed once for a column that has one value."""
    import numpy as np

    if not is_one(values):
        return make(values)
    return np.broadcast_to(make(values[:1])[0], len(values))


def distinct(values: Ints) -> Ints:
    """The different values of a column, ascending."""
    import numpy as np
    import pandas as pd

    return np.sort(values[:1] if is_one(values) else pd.unique(values))


def or_default(values: Ints, default: int = -1, *, none: Iterable[int] = ()) -> Ints:
    """`default` where a value is NULL or one of the sentinels `none`; the column itself where none is."""
    import numpy as np

    def replaced(values: Ints) -> Ints:
        unset = values == NULL
        for sentinel in none:
            unset |= values == sentinel
        return np.where(unset, default, values) if unset.any() else values

    return each(values, replaced)


def process_of(global_id: Ints) -> Ints:
    """OS process ids of global process or thread ids; the bits of host and VM are left out."""
    return each(global_id, lambda ids: (ids >> 24) & 0xFFFFFF)


def by_start(frame: pd.DataFrame, column: str = "start_ns") -> pd.DataFrame:
    """The frame in order of start, rows of equal start as the export has them."""
    import numpy as np

    start = frame[column].to_numpy()
    if len(start) > 1 and bool((start[1:] < start[:-1]).any()):
        frame = frame.iloc[np.argsort(start, kind="stable")]
    return frame.reset_index(drop=True)
