"""Freed memory is kept for the next array, where the C library lets a program say so.

The arrays of a large export are tens of megabytes each and live for moments. glibc maps each of them anew
and gives it back when it is freed, so that the system clears the same memory again for the next one: in a
report of millions of kernels that took a third of the time. A program of its own, which ends with its
command, may keep what it freed; a library must not decide that for the program that it is part of.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""Names of glibc's `mallopt`."""
LARGEST_KEPT = 1 << 30
OLD_LARGEST_KEPT = 1 << 25
"""The most that older versions accept."""
MOST_KEPT = (1 << 31) - 1
STEP = 1 << 26
"""Bytes by which the heap grows at least."""


def keep_freed_memory(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell the C library to keep what is freed; whether it was glibc, and not told otherwise already."""
    if not sys.platform.startswith("linux") or not _is_glibc():
        return False
    if "GLIBC_TUNABLES" in environment or any(name.startswith("MALLOC_") for name in environment):
        return False
    import ctypes

    mallopt = ctypes.CDLL(None).mallopt
    if not mallopt(MMAP_THRESHOLD, LARGEST_KEPT):
        mallopt(MMAP_THRESHOLD, OLD_LARGEST_KEPT)
    mallopt(TOP_PAD, STEP)
    return bool(mallopt(TRIM_THRESHOLD, MOST_KEPT))


def _is_glibc() -> bool:
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "").startswith("glibc")
    except (AttributeError, OSError, ValueError):
        return False
