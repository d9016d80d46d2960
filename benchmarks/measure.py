"""Measures commands against other ways to read the same export, in turn, as ratios of one run.

pip install -e '.[bench]'
python benchmarks/measure.py big.sqlite                  prints the table
python benchmarks/measure.py 1m.sqlite 5m.sqlite --write also writes it into docs/performance.md

Every task is a process of its own; time and peak memory are the system's own account of it. The tasks run
in turn, `--runs` times each, and the shortest time of each counts: other work on the machine only adds.
Numbers of two runs of this script are not comparable; ratios within one are.
"""

from __future__ import annotations

import argparse
import compileall
import importlib.util
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "performance.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
LIBRARIES = {"connectorx_read": "connectorx", "adbc_read": "adbc_driver_sqlite", "apsw_read": "apsw"}
MODEL = "qwen3-30b"
_KIB = 1 if sys.platform == "darwin" else 1024


@dataclass
class Measured:
    """What the runs of one task took."""

    seconds: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    failed: bool = False

    @property
    def best(self) -> float:
        return min(self.seconds)


def tasks(export: str, out: Path) -> dict[str, list[str]]:
    """Command line of each task, by the name in the table."""
    python, own = sys.executable, [sys.executable, "-m", "nsysmodel"]
    found = {
        "nsysmodel kernels": [*own, "kernels", export],
        "nsysmodel kernels --by grid": [*own, "kernels", "--by", "grid", export],
        "nsysmodel report": [*own, "report", export, "-q", "-o", str(out / "plain.html")],
        f"nsysmodel report -m {MODEL}": [
            *own,
            "report",
            export,
            "-q",
            "-m",
            MODEL,
            "-o",
            str(out / "m.html"),
        ],
    }
    other = ["own_read", "sqlite_group", "sqlite_group_three", "sqlite_fetchall", "pandas_group"]
    other += [task for task, module in LIBRARIES.items() if importlib.util.find_spec(module)]
    return found | {task: [python, str(HERE / "tasks.py"), task, export] for task in other}


def start_up() -> dict[str, list[str]]:
    """What needs no large export."""
    python = sys.executable
    return {
        "python -c pass": [python, "-c", "pass"],
        "nsysmodel --help": [python, "-m", "nsysmodel", "--help"],
        "import pandas, pyarrow, jinja2": [python, "-c", "import pandas, pyarrow, jinja2"],
    }


def run_once(command: list[str], into: Measured) -> None:
    """Run a task and add what it took."""
    begin = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    into.seconds.append(time.perf_counter() - begin)
    into.cpu_s.append(usage.ru_utime + usage.ru_stime)
    into.peak_bytes = max(into.peak_bytes, usage.ru_maxrss * _KIB)
    into.failed |= child.returncode != 0


def measure(commands: dict[str, list[str]], runs: int) -> dict[str, Measured]:
    """All tasks in turn, several times."""
    found = {name: Measured() for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            if not found[name].failed:
                run_once(command, found[name])
    return {name: result for name, result in found.items() if not result.failed}


def kernels_of(export: str) -> int:
    """Rows of the kernel table."""
    import sqlite3

    return int(
        sqlite3.connect(export).execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()[0]
    )


def table(title: str, found: dict[str, Measured], unit: float) -> list[str]:
    """One table in Markdown; `unit` is the time that the last column is a multiple of."""
    lines = [f"**{title}**", "", "| task | s | CPU s | peak | × the first |", "|---|---:|---:|---:|---:|"]
    for name, result in found.items():
        peak = f"{result.peak_bytes / 1e6:,.0f} MB"
        ratio = f"{result.best / unit:.2f}"
        lines.append(f"| `{name}` | {result.best:.2f} | {min(result.cpu_s):.2f} | {peak} | {ratio} |")
    return [*lines, ""]


def ratios(found: dict[str, Measured]) -> list[str]:
    """The ratios that the project holds itself to."""
    readers = {name: found[name].best for name in (*LIBRARIES, "sqlite_fetchall") if name in found}
    fastest = min(readers, key=lambda name: readers[name])
    times = {name: result.best for name, result in found.items()}
    own, grid = times["nsysmodel kernels"], times["nsysmodel kernels --by grid"]
    lines = [
        f"* SQLite's group-by takes {times['sqlite_group'] / own:.1f} times as long as `kernels`; that of "
        f"three columns takes {times['sqlite_group_three'] / grid:.1f} times as long as `kernels --by grid`.",
        f"* `pandas.read_sql` and groupby take {times['pandas_group'] / own:.1f} times as long as `kernels`.",
        f"* The page reader takes {times['own_read'] / readers[fastest]:.2f} times as long as the fastest "
        f"other reader, `{fastest}`, for the same columns.",
    ]
    for name in ("nsysmodel report", f"nsysmodel report -m {MODEL}"):
        if name in found:
            peak = found[name].peak_bytes / 1e9
            lines.append(
                f"* `{name}` takes {found[name].best / readers[fastest]:.2f} times as long as that bare "
                f"read, and {peak:.2f} GB."
            )
    return [*lines, ""]


def growth(by_size: dict[int, dict[str, Measured]]) -> list[str]:
    """Time per kernel of the largest export over that of the smallest."""
    small, large = min(by_size), max(by_size)
    if small == large:
        return []
    lines = [f"From {small:,} to {large:,} kernels ({large / small:.1f} times as many):", ""]
    for name in by_size[small]:
        if name.startswith("nsysmodel") and name in by_size[large]:
            times = by_size[large][name].best / by_size[small][name].best
            lines.append(f"* `{name}` takes {times:.1f} times as long.")
    return [*lines, ""]


def begin_up(runs: int, export: str | None, out: Path) -> list[str]:
    """Start-up, and a small report against its imports."""
    commands = start_up()
    if export:
        own = [sys.executable, "-m", "nsysmodel", "report", export, "-q", "-o", str(out / "small.html")]
        commands |= {"report of 10,000 kernels": own, "the same, -m " + MODEL: [*own, "-m", MODEL]}
    found = measure(commands, max(runs, 5))
    times = {name: result.best for name, result in found.items()}
    lines = [
        f"* `--help` takes {times['nsysmodel --help'] / times['python -c pass']:.1f} times as long as `pass`."
    ]
    for name in found:
        if "-m " + MODEL in name or name.startswith("report"):
            ratio = times[name] / times["import pandas, pyarrow, jinja2"]
            lines.append(f"* `{name}` takes {ratio:.1f} times as long as the imports.")
    return [*table("Start-up", found, found["python -c pass"].best), *lines, ""]


def write(lines: list[str]) -> None:
    """Replace the measured part of the document."""
    text = DOCUMENT.read_text("utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{chr(10).join(lines).rstrip()}\n{END}{after}", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("exports", nargs="+", help="exports of benchmarks/generate.py, any sizes")
    parser.add_argument("--small", help="an export of 10,000 kernels, for the start-up")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    lines = [
        f"{cores} cores, Python {platform.python_version()}, {platform.system()} {platform.machine()}.",
        "",
    ]
    # An installed package is compiled; a checkout may not be.
    compileall.compile_dir(str(HERE.parent / "nsysmodel"), quiet=1)
    by_size: dict[int, dict[str, Measured]] = {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        lines += begin_up(options.runs, options.small, out)
        for export in options.exports:
            found = measure(tasks(export, out), options.runs)
            kernels = kernels_of(export)
            by_size[kernels] = found
            size = os.path.getsize(export) / 1e6
            title = f"{kernels:,} kernels and as many API calls, {size:,.0f} MB"
            lines += table(title, found, found["nsysmodel kernels"].best) + ratios(found)
    lines += growth(by_size)
    print("\n".join(lines))
    if options.write:
        write(lines)


if __name__ == "__main__":
    main()
