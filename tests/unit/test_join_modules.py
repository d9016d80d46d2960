"""Module ranges overrule the sequence: all kernels at once, as one after the other would."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.join.modules import Module, _overruled, _place
from nsysmodel.join.types import Labels

MODEL: Any = SimpleNamespace(
    layers=("a", "a", "a"),
    kinds={"a": (SimpleNamespace(id="x"), SimpleNamespace(id="y"))},
    head=(SimpleNamespace(id="h"),),
    tail=(),
)
LABELS = ("x", "y", "h")
BUNDLES = ((("layer", 0),), (("layer", 1),))
KNOWN = [Module(0, ("x",)), Module(2, ("y",)), Module(-1, ("h",)), None, Module(1, ("z",)), Module(1, ("x",))]


def _labels(rows: list[tuple[int, int, bool, int]]) -> Labels:
    op = np.array([code for code, *_ in rows], np.int8)
    return Labels(
        step=np.zeros(len(rows), np.int8),
        layer=np.array([layer for _, layer, *_ in rows], np.int8),
        op=op,
        belief=np.zeros(len(rows), np.int8),
        executions=np.array([opens for _, _, opens, _ in rows], np.int8),
        op_labels=LABELS,
        bundle=np.where(op >= 0, 0, -1).astype(np.int8),
        bundles=BUNDLES,
        beliefs=np.array([0.5]),
    )


def _one_by_one(
    labels: Labels, range_of: list[int], rows: list[int]
) -> list[tuple[int, int, int, int, float]]:
    op, layer, bundle, opens = (
        array.tolist() for array in (labels.op, labels.layer, labels.bundle, labels.executions)
    )
    confidence = labels.confidence().tolist()
    for row in rows:
        module = KNOWN[range_of[row]]
        assert module is not None
        place = _place(MODEL, module.ops[0], module.layer)
        if module.ops[0] not in LABELS or place not in BUNDLES:
            op[row], bundle[row], opens[row] = -1, -1, 0
            continue
        code = LABELS.index(module.ops[0])
        before = row > 0 and op[row - 1] == code and layer[row - 1] == module.layer
        op[row], layer[row], bundle[row] = code, module.layer, BUNDLES.index(place)
        opens[row], confidence[row] = 0 if before else 1, 1.0
    return list(zip(op, layer, bundle, opens, confidence, strict=True))


ROW = st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.booleans(), st.integers(0, 5))


@given(st.lists(ROW, max_size=12), st.data())
def test_modules_overrule_as_one_after_the_other(
    rows: list[tuple[int, int, bool, int]], data: st.DataObject
) -> None:
    range_of = [text for *_, text in rows]
    named = [row for row, text in enumerate(range_of) if KNOWN[text] is not None]
    wrong = [row for row in named if data.draw(st.booleans())]
    expected = _one_by_one(_labels(rows), range_of, wrong)
    found = _overruled(_labels(rows), MODEL, KNOWN, np.array(range_of, np.int64), np.array(wrong, np.int64))
    columns = (found.op, found.layer, found.bundle, found.executions, found.confidence())
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected
