"""Values of one column in a block of rows, whatever mixture of serial types the rows have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.export.pages.cells import Cells
from nsysmodel.export.pages.database import DeclinedError
from nsysmodel.export.pages.shapes import BLOB, NULL, REAL, size_of
from nsysmodel.export.source import NULL as NO_INTEGER
from nsysmodel.export.source import Kind

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.pages.database import Bytes, Ints

    Values = np.ndarray[Any, np.dtype[Any]]


_SIZES = tuple(size_of(kind) for kind in range(BLOB))
_FEW_TEXTS = 10_000
_CONSTANTS = tuple({8: 0, 9: 1}.get(kind, NO_INTEGER) for kind in range(BLOB))
"""By serial type below those of blobs and texts; types 8 and 9 are the numbers 0 and 1."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column lies in the rows of a block.

    Attributes:
        cells: the rows.
        codes: shape of each row, as an index into `types` and `offsets`.
        types, offsets: serial type of the column, and its place in the record.
    """

    cells: Cells
    codes: Ints
    types: Ints
    offsets: Ints


def decode(place: Place, kind: Kind, *, is_rowid: bool) -> Values:
    """The column as the asked kind.

    Raises:
        DeclinedError: a value is of another kind, which SQLite would convert.
    """
    if is_rowid:
        # The record of such a row holds NULL in place of the rowid.
        if kind != "int" or (place.types != NULL).any():
            raise DeclinedError("a rowid is stored twice or asked for as text")
        return place.cells.rowid
    if kind == "int":
        return _integers(place)
    return _reals(place) if kind == "real" else _texts(place)


def _integers(place: Place) -> Values:
    import numpy as np

    types = place.types
    present = set(types.tolist())
    if REAL in present or max(present) >= BLOB:
        raise DeclinedError("a column of integers holds something else")
    size, constant = np.array(_SIZES)[types], np.array(_CONSTANTS)[types]
    sizes = {_SIZES[kind] for kind in present}
    if sizes == {0}:
        found = by_shape(constant, place.codes)
        return np.full(len(place.codes), found) if isinstance(found, np.int64) else found
    if sizes == {1}:
        return place.cells.data.view(np.int8)[_at(place)].astype(np.int64)
    value = _word(place)
    # Shifted down from the top of the word: that extends the sign.
    value >>= by_shape(64 - 8 * np.maximum(size, 1), place.codes)
    if 0 in sizes:
        held = (size == 0)[place.codes]
        value[held] = constant[place.codes[held]]
    return value


def _reals(place: Place) -> Values:
    """Reals; SQLite stores those that are whole numbers as integers."""
    import numpy as np

    types = place.types
    if (types >= BLOB).any():
        raise DeclinedError("a column of numbers holds something else")
    real = types == REAL
    result = _word(place).view(np.float64) if real.any() else np.zeros(len(place.codes))
    if not real.all():
        whole = Place(place.cells, place.codes, np.where(real, NULL, types), place.offsets)
        integers = _integers(whole)
        held = ~real[place.codes]
        result = np.where(held, np.where(integers == NO_INTEGER, np.nan, integers), result)
        if (integers[held] == NO_INTEGER).any() and (types == 6).any():
            raise DeclinedError("the least integer cannot be told from NULL")
    return result


def _texts(place: Place) -> Values:
    """Texts as objects, one object for equal ones."""
    import numpy as np

    types = place.types
    if ((types > NULL) & (types < BLOB)).any():
        raise DeclinedError("a column of texts holds numbers")
    length = np.where(types == NULL, 0, (types - BLOB) // 2)[place.codes]
    few = len(length) <= _FEW_TEXTS
    raw, which = (_few if few else _many)(place.cells.data, _at(place), length)
    known = np.empty(len(raw), dtype=object)
    known[:] = [text.decode("utf-8", "replace") for text in raw]
    result: Values = known[which]
    missing = types == NULL
    if missing.any():
        result[missing[place.codes]] = None
    return result


def _few(data: Bytes, at: Ints, length: Ints) -> tuple[list[bytes], Ints]:
    """The different texts, and which of them each row has; without a library that takes long to load."""
    import numpy as np

    known: dict[bytes, int] = {}
    view = memoryview(data.data)
    which = [
        known.setdefault(bytes(view[first : first + size]), len(known))
        for first, size in zip(at.tolist(), length.tolist(), strict=True)
    ]
    return list(known), np.array(which, dtype=np.int64)


def _many(data: Bytes, at: Ints, length: Ints) -> tuple[list[bytes], Ints]:
    """As `_few`, of many rows."""
    import numpy as np
    import pyarrow as pa  # type: ignore[import-untyped]

    bounds = np.zeros(len(length) + 1, dtype=np.int64)
    np.cumsum(length, out=bounds[1:])
    raw = data[np.repeat(at - bounds[:-1], length) + np.arange(int(bounds[-1]))]
    packed = pa.Array.from_buffers(
        pa.large_binary(), len(length), [None, pa.py_buffer(bounds), pa.py_buffer(raw)]
    ).dictionary_encode()
    return packed.dictionary.to_pylist(), np.asarray(packed.indices)


def _at(place: Place) -> Ints:
    at: Ints = place.cells.start + by_shape(place.offsets, place.codes)
    return at


def _word(place: Place) -> Ints:
    """The eight bytes at the column's place as one signed integer."""
    return place.cells.words(by_shape(place.offsets, place.codes), ">i8")[0]


def by_shape(values: Ints, codes: Ints) -> Any:
    """Values by row; one number where all shapes agree."""
    return values[0] if len(values) == 1 or (values == values[0]).all() else values[codes]
