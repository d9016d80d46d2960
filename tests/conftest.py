"""Options and fixtures that several folders of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no fault of the code: no example has a time limit.
settings.register_profile("nsysmodel", deadline=None)
settings.load_profile("nsysmodel")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="Write the golden files anew instead of comparing."
    )


@pytest.fixture(scope="session")
def repository() -> Path:
    return REPOSITORY


@pytest.fixture(scope="session")
def bundled(repository: Path) -> Path:
    """The committed export of a synthetic decode."""
    return repository / "fixtures" / "qwen3-30b-decode-gh200.sqlite"
