"""A long capture is aligned in parts; what comes out must be what one alignment gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nsysmodel import analyze
from nsysmodel.join import repeats

FIXTURE = Path(__file__).parents[2] / "fixtures" / "qwen3-30b-decode-gh200.sqlite"


def test_parts_give_what_the_whole_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = analyze.instances(FIXTURE, "qwen3-30b")
    monkeypatch.setattr(repeats, "LONG", 2000)
    monkeypatch.setattr(repeats, "FIRST", 3000)
    parts = analyze.instances(FIXTURE, "qwen3-30b")
    for column in ("step", "layer", "op"):
        assert parts[column].equals(whole[column]), column


def test_copies_of_a_step_are_aligned_once() -> None:
    launch = np.array([1, 2, 3, 1, 2, 3, 1, 2, 4, 1, 2, 3])
    starts = np.array([0, 3, 6, 9])
    piece, first = repeats._pieces(launch, starts, np.full(4, 3))
    assert piece.tolist() == [0, 0, 1, 0]
    assert first.tolist() == [0, 2]


def test_pieces_of_another_length_are_others() -> None:
    launch = np.array([1, 2, 1, 2, 3, 1, 2])
    piece, _ = repeats._pieces(launch, np.array([0, 2, 5]), np.array([2, 3, 2]))
    assert piece.tolist() == [0, 1, 0]
