"""What a reader of tables must offer, whatever the file behind it.

A source knows tables and columns; it knows nothing of kernels. Integer columns arrive as int64 with
`NULL` for a missing value, so that nanoseconds never pass through float; text as object arrays with
None; real numbers as float64 with NaN. A column that has one value in all rows may arrive as an array of
stride 0, which takes no memory and cannot be written to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np

Kind = Literal["int", "text", "real"]
Rows = dict[str, "np.ndarray[Any, Any]"]

NULL = -(2**63)
"""Stands for SQL NULL in integer columns."""


class Source(Protocol):
    """An opened export: tables of columns."""

    size: int
    """Bytes of the file or folder."""

    cut_off: bool
    """The file is shorter than it says of itself."""

    def tables(self) -> tuple[str, ...]:
        """Names of the tables as the file spells them."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Column names of a table as the file spells them; empty for a table that is absent."""

    def count(self, table: str) -> int:
        """Rows of a table; 0 for a table that is absent."""

    def read(self, table: str, want: Mapping[str, Kind]) -> Rows:
        """The wanted columns, all of one length.

        Tables and columns are found whatever their case. A column that is absent is absent in the result
        too; a table that is absent gives an empty mapping.

        Raises:
            ExportError: the file is damaged there.
        """

    def close(self) -> None:
        """Let go of the file and remove temporary copies."""
