"""The table of columns is what the documentation shows, and importing is quick."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from nsysmodel.export.columns import FRAMES, empty, markdown

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documentation_shows_the_table() -> None:
    assert markdown().strip() in (DOCS / "columns.md").read_text(encoding="utf-8")


def test_empty_frames_have_the_columns() -> None:
    for name, columns in FRAMES.items():
        frame = empty(name)
        assert [(c, str(t)) for c, t in frame.dtypes.items()] == [(c.name, c.dtype) for c in columns]


def test_units_stand_in_the_names() -> None:
    for columns in FRAMES.values():
        for column in columns:
            assert column.meaning.endswith(".")
            assert (column.unit == "ns") == column.name.endswith("_ns")
            assert (column.unit == "Hz") == column.name.endswith("_hz")


def test_importing_the_package_imports_no_data_library() -> None:
    heavy = "('pandas', 'numpy', 'pyarrow')"
    code = f"import sys, nsysmodel; nsysmodel.__version__; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_resolve() -> None:
    import nsysmodel

    assert nsysmodel.__version__
    assert callable(nsysmodel.open_run)
    assert set(nsysmodel.__all__) <= set(dir(nsysmodel))
