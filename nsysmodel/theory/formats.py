"""Number formats: bytes per parameter with scales, and the engine that multiplies them.

Bytes per parameter (weights with their scales): bf16 2, fp8 in 128 x 128 blocks 1.00024, MXFP4 0.53125,
NVFP4 0.5625, AWQ int4 in groups of 128 with zero points 0.51953, GPTQ int4 symmetric 0.51563.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container
from dataclasses import dataclass, replace

from nsysmodel.errors import ModelError


@dataclass(frozen=True, slots=True)
class Format:
    """How the numbers of a matrix are stored, and which engine multiplies them.

    Attributes:
        name: `bf16`, `fp8_block`, `nvfp4`, …
        bits: bits of one number without scales.
        engines: engines by preference; the first whose peak the device has is used.
        group_rows, group_columns: numbers that share one scale; a 0 spans that whole dimension.
        scale_bytes: bytes of one scale with its zero point; 0 where there are no scales.
        activation_bytes: bytes of one activation as the multiplication reads it; 0 for the model's own
            format (weights only are quantised).
        activation_group: activations that share one 4-byte scale; 0 for none worth counting.
        needs: engine that the device must have for `engines[0]` to be taken; empty for `engines[0]` itself.
    """

    name: str
    bits: float
    engines: tuple[str, ...]
    group_rows: int = 1
    group_columns: int = 0
    scale_bytes: float = 0
    activation_bytes: float = 0
    activation_group: int = 0
    needs: str = ""

    @property
    def bytes(self) -> float:
        """Bytes of one number without scales."""
        return self.bits / 8

    def matrix_bytes(self, rows: float, columns: float) -> float:
        """Bytes of a matrix of `rows` outputs by `columns` inputs, scales included.

        >>> parse("nvfp4").matrix_bytes(1024, 1024) / 1024**2
        0.5625
        """
        body = rows * columns * self.bits / 8
        if not self.scale_bytes or not rows or not columns:
            return body
        down = math.ceil(rows / self.group_rows) if self.group_rows else 1
        across = math.ceil(columns / self.group_columns) if self.group_columns else 1
        return body + down * across * self.scale_bytes

    def engine(self, available: Container[str] | None = None) -> str:
        """The engine that multiplies this format on a device with the engines `available`.

        Without a device it is the first choice, the fastest. Falling back means that the weights are
        widened in registers: the next engine of the list.

        >>> parse("fp8").engine({"bf16", "fp32"}), parse("fp8").engine()
        ('bf16', 'fp8')
        """
        if available is None:
            return self.engines[0]
        for place, engine in enumerate(self.engines):
            wanted = self.needs if place == 0 and self.needs else engine
            if wanted in available and engine in available:
                return engine
        return self.engines[-1]


_PLAIN = (
    Format("bf16", 16, ("bf16",)),
    Format("fp16", 16, ("fp16", "bf16")),
    Format("fp32", 32, ("fp32",)),
    Format("tf32", 32, ("tf32", "fp32")),
    Format("fp64", 64, ("fp64",)),
)

_W8 = ("fp8", "bf16")
_QUANTISED = (
    Format("fp8", 8, _W8, group_rows=0, scale_bytes=4, activation_bytes=1),
    Format("fp8_channel", 8, _W8, scale_bytes=4, activation_bytes=1),
    Format("fp8_block", 8, _W8, 128, 128, 4, activation_bytes=1, activation_group=128),
    Format("fp8_w8a16", 8, ("bf16",), scale_bytes=4),
    Format("mxfp8", 8, _W8, 1, 32, 1, activation_bytes=1, activation_group=128),
    Format("mxfp4", 4, ("fp8", "bf16"), 1, 32, 1, needs="fp4"),
    Format("mxfp4_w4a16", 4, ("bf16",), 1, 32, 1),
    Format("nvfp4", 4, ("fp4", "bf16"), 1, 16, 1, activation_bytes=0.5, activation_group=64),
    Format("nvfp4_w4a16", 4, ("bf16",), 1, 16, 1),
    Format("awq", 4, ("bf16",), 1, 128, 2.5),
    Format("gptq", 4, ("bf16",), 1, 128, 2),
    Format("int4", 4, ("bf16",), 1, 128, 2),
    Format("int8", 8, ("int8", "bf16"), scale_bytes=4, activation_bytes=1),
    Format("int8_w8a16", 8, ("bf16",), scale_bytes=2),
)

FORMATS = {fmt.name: fmt for fmt in _PLAIN + _QUANTISED}
PLAIN_NAMES = tuple(fmt.name for fmt in _PLAIN)
QUANTISED_NAMES = tuple(fmt.name for fmt in _QUANTISED)
STATE_NAMES = ("bf16", "fp16", "fp32", "fp8", "int8", "nvfp4")

_ALIASES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8",
    "float8": "fp8",
}
_GROUPED = re.compile(r"(int[48]|awq|gptq)_g(\d{1,5})")


def parse(name: str) -> Format:
    """The format of that name; `int4_g32`, `awq_g64` and the like name another group size.

    Raises:
        ModelError: there is no such format.
    """
    plain = name.strip().lower().removeprefix("torch.")
    plain = _ALIASES.get(plain, plain)
    if plain in FORMATS:
        return FORMATS[plain]
    grouped = _GROUPED.fullmatch(plain)
    if grouped and int(grouped[2]) > 0:
        base = FORMATS["int8_w8a16" if grouped[1] == "int8" else grouped[1]]
        return replace(base, name=plain, group_columns=int(grouped[2]))
    raise ModelError(f"There is no number format {name!r}.", f"Known: {', '.join(FORMATS)}; or int4_g32.")
