"""The file of structures against the bundled models."""

from __future__ import annotations

from importlib import resources

import pytest

from nsysmodel.judge import structures
from nsysmodel.judge.structures import Structure, file_text, structure_of_bundled
from nsysmodel.model import bundled


def test_the_file_is_that_of_the_bundled_models() -> None:
    held = resources.files("nsysmodel.judge").joinpath(structures.FILE).read_text("utf-8")
    assert held == file_text(), "the bundled models have changed: run `make structures`"


def test_a_model_that_the_file_lacks_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    name = bundled()[0]
    before = structure_of_bundled(name)
    monkeypatch.setattr(structures, "_known", dict)
    assert structure_of_bundled(name) == before
    assert isinstance(before, Structure)
