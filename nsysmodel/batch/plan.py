"""From what a user names to planned runs: exports, names, labels, workloads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from nsysmodel.batch.folder import is_batch
from nsysmodel.batch.inputs import expand
from nsysmodel.batch.labels import compiled, from_path, parse_labels, with_values
from nsysmodel.batch.naming import unique_names
from nsysmodel.batch.types import PlannedRun
from nsysmodel.workload import WorkloadRequest


def plan(
    exports: Sequence[str],
    *,
    workload: WorkloadRequest | None = None,
    labels: Mapping[str, str] | None = None,
    label_from: Sequence[str] = (),
    workload_from: Sequence[str] = (),
) -> list[PlannedRun]:
    """The runs of a batch.

    Args:
        exports: files, globs, folders and `@` lists; the result of an earlier batch is never taken for one.
        workload: what is known of all runs.
        labels: labels of all runs.
        label_from: patterns whose named groups, found in the path of an export, become labels.
        workload_from: patterns whose named groups (`batch`, `context`, `tp`, …) become its workload.

    Raises:
        BatchError: an argument holds no export.
        BatchUsageError: a pattern or label is wrong.
    """
    label_patterns = [compiled(text, "--label-from") for text in label_from]
    workload_patterns = [compiled(text, "--workload-from") for text in workload_from]
    found = expand(exports, skip=_of_batch)
    paths = [os.path.abspath(path) for path, _ in found]
    runs = []
    for (given, rest), path, name in zip(found, paths, unique_names(paths), strict=True):
        said = dict(labels or {})
        for pattern in label_patterns:
            said.update(from_path(given, pattern))
        said.update(parse_labels(text for text in rest.split("\t") if text.strip()))
        request = workload or WorkloadRequest()
        for pattern in workload_patterns:
            request = with_values(request, from_path(given, pattern), given)
        runs.append(PlannedRun(path, name, said, request))
    return runs


def _of_batch(path: Path) -> bool:
    """True for the folder of a batch, and for the runs in it: its pieces look like tables of an export."""
    return is_batch(path) or is_batch(path.parent)
