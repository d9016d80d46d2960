"""What is freed is kept, unless the environment says what to do with it."""

from __future__ import annotations

import os
import sys

import pytest

from nsysmodel.cli import allocation


def test_what_the_environment_says_stays() -> None:
    assert not allocation.keep_freed_memory({"MALLOC_ARENA_MAX": "1"})
    assert not allocation.keep_freed_memory({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=1"})


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocation.keep_freed_memory({})
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "confstr", lambda name: None, raising=False)
    assert not allocation.keep_freed_memory({})
