"""One thing to be measured, as a process of its own: `python benchmarks/tasks.py TASK EXPORT`."""

from __future__ import annotations

import sys
from collections.abc import Callable

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"
COLUMNS = (
    "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, "
    "gridX, gridY, gridZ, blockX, blockY"
)
READ = f"SELECT {COLUMNS} FROM {TABLE}"
STATISTICS = "count(*), sum(end - start), avg(end - start), min(end - start), max(end - start)"
GROUP = f"SELECT demangledName, {STATISTICS} FROM {TABLE} GROUP BY 1 ORDER BY 3 DESC"
GROUP_THREE = (
    f"SELECT demangledName, gridX, blockX, {STATISTICS} FROM {TABLE} GROUP BY 1, 2, 3 ORDER BY 5 DESC"
)


def sqlite_group(path: str) -> int:
    """SQLite's own GROUP BY of the name."""
    import sqlite3

    return len(sqlite3.connect(path).execute(GROUP).fetchall())


def sqlite_group_three(path: str) -> int:
    """SQLite's own GROUP BY of name and launch shape."""
    import sqlite3

    return len(sqlite3.connect(path).execute(GROUP_THREE).fetchall())


def sqlite_fetchall(path: str) -> int:
    """The standard library's rows."""
    import sqlite3

    return len(sqlite3.connect(path).execute(READ).fetchall())


def pandas_group(path: str) -> int:
    """pandas.read_sql of the kernel table and a groupby."""
    import sqlite3

    import pandas as pd

    frame = pd.read_sql(READ, sqlite3.connect(path))
    frame["duration"] = frame["end"] - frame["start"]
    names = pd.read_sql("SELECT id, value FROM StringIds", sqlite3.connect(path)).set_index("id")["value"]
    groups = frame.groupby("demangledName")["duration"].agg(
        ["count", "sum", "mean", "median", "min", "max", "std"]
    )
    groups.index = groups.index.map(names)
    return len(groups.sort_values("sum", ascending=False))


def connectorx_read(path: str) -> int:
    """connectorx to Arrow."""
    import connectorx

    return int(connectorx.read_sql(f"sqlite://{path}", READ, return_type="arrow").num_rows)


def adbc_read(path: str) -> int:
    """ADBC to Arrow."""
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(path) as connection, connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetch_arrow_table().num_rows)


def apsw_read(path: str) -> int:
    """APSW, rows made and dropped."""
    import apsw

    return sum(1 for _ in apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY).execute(READ))


def own_read(path: str) -> int:
    """Our page reader, the same columns as int64 arrays."""
    from pathlib import Path

    from nsysmodel.export.sqlite_source import SqliteSource

    source = SqliteSource(Path(path), "export")
    return len(source.read(TABLE, dict.fromkeys(COLUMNS.split(", "), "int"))["start"])


TASKS: dict[str, Callable[[str], int]] = {
    task.__name__: task
    for task in (
        sqlite_group,
        sqlite_group_three,
        sqlite_fetchall,
        pandas_group,
        connectorx_read,
        adbc_read,
        apsw_read,
        own_read,
    )
}

if __name__ == "__main__":
    print(TASKS[sys.argv[1]](sys.argv[2]))
