"""What a user says of runs: labels, and workloads read from the paths of the exports."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping

from nsysmodel.batch.types import BatchUsageError
from nsysmodel.workload import WorkloadRequest

_KEY = re.compile(r"[^\W\d][\w.-]*")
LONGEST = 200


def parse_labels(texts: Iterable[str]) -> dict[str, str]:
    """Labels from `KEY=VALUE` texts; a later one replaces an earlier one.

    Raises:
        BatchUsageError: a text is not a label.

    >>> parse_labels(["commit=abc", "note=a=b"])
    {'commit': 'abc', 'note': 'a=b'}
    """
    labels = {}
    for text in texts:
        key, equals, value = text.strip().partition("=")
        if not equals or not _KEY.fullmatch(key.strip()):
            raise BatchUsageError(f"{text!r} is not a label.", "Write KEY=VALUE, for example commit=1a2b3c4.")
        labels[key.strip()] = value.strip()[:LONGEST]
    return labels


def compiled(pattern: str, flag: str) -> re.Pattern[str]:
    """A pattern whose named groups give values.

    Raises:
        BatchUsageError: it is not a regular expression, or has no named group.
    """
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise BatchUsageError(f"{pattern!r} of {flag} is not a regular expression: {error}.") from None
    if not expression.groupindex:
        raise BatchUsageError(
            f"{pattern!r} of {flag} has no named group.", "Name what it finds: (?P<commit>[0-9a-f]{7})."
        )
    return expression


def from_path(path: str, expression: re.Pattern[str]) -> dict[str, str]:
    """What the named groups find in a path as it was given; nothing where the pattern does not fit.

    >>> from_path("runs/tp4/b8.sqlite", re.compile(r"tp(?P<gpus>[0-9]+)"))
    {'gpus': '4'}
    """
    match = expression.search(path.replace("\\", "/"))
    found = match.groupdict() if match else {}
    return {key: value[:LONGEST] for key, value in found.items() if value is not None}


def with_values(request: WorkloadRequest, values: Mapping[str, str], path: str) -> WorkloadRequest:
    """`request` with what a path says of the workload.

    Raises:
        BatchUsageError: a group is not a workload flag, or its text not a value of it.
    """
    known = {item.name: str(item.type) for item in dataclasses.fields(WorkloadRequest)}
    changes: dict[str, object] = {}
    for key, text in values.items():
        if key not in known:
            raise BatchUsageError(
                f"{key!r} is not a workload flag.", f"--workload-from knows {', '.join(known)}."
            )
        changes[key] = _value(key, text, known[key], path)
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


_WORDS = {"phase": ("decode", "prefill"), "logits": ("last", "all")}


def _value(key: str, text: str, kind: str, path: str) -> str | int:
    if kind.startswith("int"):
        if not text.isdecimal() or (int(text) < 1 and key != "context"):
            raise BatchUsageError(f"{text!r} in {path} is not a value of --{key}.", "It must be a number.")
        return int(text)
    if key in _WORDS and text not in _WORDS[key]:
        raise BatchUsageError(
            f"{text!r} in {path} is not a value of --{key}.", f"It is {' or '.join(_WORDS[key])}."
        )
    return text
