"""The wheel and the source archive: what they hold, and that the program works far from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.package

SUFFIXES = {".py", ".yaml", ".json", ".typed", ".j2", ".css", ".js"}
LARGEST_BYTES = 300_000


def call(*command: str | Path, cwd: Path) -> str:
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    call(sys.executable, "-m", "build", "--outdir", folder, repository, cwd=folder)
    return folder


def sources(repository: Path) -> set[str]:
    """What the wheel must hold, by its path there."""
    found = set()
    for root, place in (("nsysmodel", "nsysmodel"), ("reports/templates", "nsysmodel/_templates")):
        for path in (repository / root).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                found.add(f"{place}/{path.relative_to(repository / root).as_posix()}")
    return found


def test_wheel_holds_the_package_and_nothing_else(built: Path, repository: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {info.filename: info.file_size for info in archive.infolist()}
    own = {name for name in files if ".dist-info/" not in name}
    assert own == sources(repository)
    assert {Path(name).suffix for name in own} <= SUFFIXES
    assert max(files.values()) < LARGEST_BYTES
    for wanted in (
        "nsysmodel/py.typed",
        "nsysmodel/_templates/page.html.j2",
        "nsysmodel/_templates/report.css",
        "nsysmodel/hardware/catalogue.yaml",
        "nsysmodel/join/data/index.yaml",
        "nsysmodel/model/zoo/qwen3-30b-a3b.yaml",
        "nsysmodel/report/schema.json",
    ):
        assert wanted in own


def test_source_archive_holds_what_tests_need(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.split("/", 1)[1] for name in tar.getnames() if "/" in name}
    for wanted in (
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        ".ci/run",
        "fixtures/qwen3-30b-decode-gh200.sqlite",
        "reports/templates/page.html.j2",
        "tests/conftest.py",
        "docs/how-the-join-works.md",
    ):
        assert wanted in names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", ".git/"))]


def test_installed_wheel_writes_the_report(built: Path, bundled: Path, tmp_path: Path) -> None:
    place = tmp_path / "env"
    venv.create(place, with_pip=True)
    scripts = place / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = built.glob("*.whl")
    call(scripts / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    told = call(
        scripts / "nsysmodel", "report", bundled, "--model", "qwen3-30b", "--json", "r.json", cwd=tmp_path
    )
    assert "A step takes 4.89 ms" in told
    assert "5.02×" in (tmp_path / f"{bundled.stem}.html").read_text("utf-8")
    document = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert document["devices"][0]["ops"][0]["op"] == "o_proj"
    where = call(scripts / "python", "-c", "import nsysmodel; print(nsysmodel.__file__)", cwd=tmp_path)
    assert where.startswith(str(place))
    call(scripts / "python", "-m", "nsysmodel", "--help", cwd=tmp_path)
