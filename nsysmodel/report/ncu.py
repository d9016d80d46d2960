"""A Nsight Compute command that profiles one launch of a kernel, safe to paste into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection

from nsysmodel.report.text import without_arguments

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 160
_LIMIT = 1_600


def command(name: str, skip: int, others: Collection[str] = ()) -> str:
    """The command for the kernel called `name`, after `skip` launches of it.

    A kernel without template arguments is named by its function; another by the start of its demangled
    name, since templates such as `device_kernel` serve many purposes. Characters that a shell or a
    regular expression might read otherwise are left to the wildcard. The start is long enough to tell the
    kernel from `others`, since the launches to skip are counted by its whole name.

    >>> command("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 48)
    'ncu --set full -k nvjet_tst_64x8_64x16_4x1_v_bz_TNT --launch-skip 48 --launch-count 1 -- YOUR_COMMAND'
    >>> command("void moe::sum<bf16, 8>(int)", 0).split(" --launch")[0]
    "ncu --set full --kernel-name-base demangled -k 'regex:moe::sum<bf16,.8>'"
    """
    tail = f"--launch-skip {max(skip, 0)} --launch-count 1 -- YOUR_COMMAND"
    name = name.removeprefix("void ")
    plain = without_arguments(name).strip()
    if _WORD.fullmatch(plain) and len(plain) <= _LONGEST:
        return f"ncu --set full -k {plain} {tail}"
    length = _LONGEST
    rest = [other.removeprefix("void ") for other in others if other.removeprefix("void ") != name]
    while length < min(len(plain), _LIMIT) and any(other.startswith(plain[:length]) for other in rest):
        length += _LONGEST
    pattern = "".join(_safe(char) for char in plain[:length])
    return f"ncu --set full --kernel-name-base demangled -k {shlex.quote('regex:' + pattern)} {tail}"


def _safe(char: str) -> str:
    return char if char.isascii() and (char.isalnum() or char in "_:<>,-=") else "."
