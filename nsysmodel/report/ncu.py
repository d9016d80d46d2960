"""A Nsight Compute command that profiles one launch of a kernel, safe to paste into a shell."""

from __future__ import annotations

import re
import shlex

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 160


def command(name: str, skip: int) -> str:
    """The command for the kernel called `name`, after `skip` launches of it.

    A kernel without template arguments is named by its function; another by the start of its demangled
    name, since templates such as `device_kernel` serve many purposes. Characters that a shell or a
    regular expression might read otherwise are left to the wildcard.

    >>> command("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 48)
    'ncu --set full -k nvjet_tst_64x8_64x16_4x1_v_bz_TNT --launch-skip 48 --launch-count 1 -- YOUR_COMMAND'
    >>> command("void moe::sum<bf16, 8>(int)", 0).split(" --launch")[0]
    "ncu --set full --kernel-name-base demangled -k 'regex:moe::sum<bf16,.8>'"
    """
    tail = f"--launch-skip {max(skip, 0)} --launch-count 1 -- YOUR_COMMAND"
    name = name.removeprefix("void ")
    head = name.split("(")[0].strip()
    plain = name if head.endswith("::") or not head else head
    if _WORD.fullmatch(plain) and len(plain) <= _LONGEST:
        return f"ncu --set full -k {plain} {tail}"
    pattern = "".join(_safe(char) for char in plain[:_LONGEST])
    return f"ncu --set full --kernel-name-base demangled -k {shlex.quote('regex:' + pattern)} {tail}"


def _safe(char: str) -> str:
    return char if char.isascii() and (char.isalnum() or char in "_:<>,-=") else "."
