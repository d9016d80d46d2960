"""What the launching threads did, looked up by time."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from nsysmodel import intervals
from nsysmodel.account.types import Activity
from nsysmodel.cutting import is_set
from nsysmodel.intervals import Ints, Spans


class HostCalls:
    """API calls of one process, in order of start."""

    def __init__(self, activity: Activity, api_calls: pd.DataFrame) -> None:
        self.activity = activity
        self._calls = Spans(api_calls["start_ns"].to_numpy(np.int64), api_calls["end_ns"].to_numpy(np.int64))
        self._thread = api_calls["global_tid"].to_numpy(np.int64)
        names = api_calls["name"].astype("category").cat
        self._code = names.codes.to_numpy()
        self._texts = [str(text) for text in names.categories]
        # Calls of one thread that are not nested: then only those near the asked times are looked at.
        self._apart = is_set(*self._calls)

    def busiest(self, spans: Spans, threads: Ints, pattern: str) -> str:
        """The API call of this pattern that took most of these times, empty where there is none."""
        merged = intervals.union(spans.start, spans.end)
        if not self._code.size or not merged.start.size:
            return ""
        rows, taken = self._near(merged) if self._apart else self._all(merged)
        wanted = np.array([bool(re.search(pattern, text)) for text in self._texts] + [False])
        # Names of no text have the last place, which is not wanted.
        code = self._code[rows]
        mine = wanted[code] & np.isin(self._thread[rows], threads)
        time = np.zeros(len(self._texts), dtype=np.int64)
        np.add.at(time, code[mine], taken[mine])
        by_name = {text: int(ns) for text, ns in zip(self._texts, time, strict=True) if ns}
        return max(sorted(by_name), key=lambda name: by_name[name], default="")

    def _near(self, merged: Spans) -> tuple[Ints, Ints]:
        """Rows of calls, and the time of each within one of the spans."""
        pieces = intervals.clip(self._calls, merged)
        return pieces.part_of, pieces.end - pieces.start

    def _all(self, merged: Spans) -> tuple[Ints, Ints]:
        """As `_near`, for calls that overlap."""
        taken = intervals.covered(self._calls.start, self._calls.end, merged)
        rows = np.flatnonzero(taken)
        return rows, taken[rows]
