"""Name and launch shape of each kernel as one number: of millions of kernels there are hundreds of shapes.

What is asked of a shape (its launch, its kernel's class, whether two of them differ) is asked of one example.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from nsysmodel.grouping import codes_of, first_rows
from nsysmodel.join.runs import narrow
from nsysmodel.join.types import Codes, Ints

SHAPE = ["name", "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]
"""What tells one use of a kernel from another."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Kernels by name and launch shape.

    Attributes:
        code: number of each kernel's shape, in order of first rows.
        examples: the first row of each shape.
    """

    code: Codes
    examples: Ints

    def of(self, rows: Codes) -> tuple[Codes, Ints]:
        """The same of these rows (ascending, no row twice): numbers, and examples among the rows."""
        if len(rows) == len(self.code):
            return self.code, self.examples
        return renumbered(self.code[rows], rows)


def shapes_of(kernels: pd.DataFrame) -> Shapes:
    """Shapes of a kernel frame."""
    columns = []
    for column in SHAPE:
        values = kernels[column]
        plain = values.astype("category").cat.codes if column == "name" else values
        columns.append(plain.to_numpy())
    codes = codes_of(columns)
    return Shapes(narrow(codes), first_rows(codes, int(codes.max(initial=-1)) + 1))


def renumbered(codes: Codes, rows: Codes) -> tuple[Codes, Ints]:
    """Codes numbered anew in order of first occurrence, and those of `rows` that stand there."""
    own, known = pd.factorize(codes)
    first = np.empty(len(known), np.int64)
    # Of several rows of one code the last that is written stays.
    first[own[::-1]] = rows[::-1]
    return narrow(own, len(known)), first
