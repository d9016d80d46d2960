"""Options that mean the same in every command, one decorator each.

Each decorator collects its flags into one value, so that a command receives `workload`, `hardware`,
`selection` instead of twenty arguments.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

F = TypeVar("F", bound=Callable[..., Any])


def _steps(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, dash, last = value.partition("-")
    try:
        pair = int(first), int(last if dash else first)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a range of steps such as 5-20.") from None
    if pair[0] > pair[1] or pair[0] < 0:
        raise click.BadParameter(f"{value!r} ends before it starts.")
    return pair


def _time_range(_ctx: click.Context, _param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, dash, last = value.partition("-")
    try:
        start, end = float(first), float(last)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a range of seconds such as 1.5-2.25.") from None
    if not dash or not math.isfinite(start) or not math.isfinite(end) or end <= start:
        raise click.BadParameter(f"{value!r} is not a range of seconds such as 1.5-2.25.")
    return round(start * 1e9), round(end * 1e9)


def _regex(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    try:
        re.compile(value or "")
    except re.error as error:
        raise click.BadParameter(f"{value!r} is not a regular expression: {error}.") from None
    return value


_COUNT = click.IntRange(min=1)


def workload_options(command: F) -> F:
    """Add the workload flags; the command receives `workload: WorkloadRequest`."""
    options = [
        click.option("--phase", type=click.Choice(["decode", "prefill"]), help="Phase of the judged steps."),
        click.option("--batch", type=_COUNT, help="Sequences in a step."),
        click.option(
            "--context",
            type=click.IntRange(min=0),
            help="KV length including the current token; in prefill the cached prefix.",
        ),
        click.option("--tokens", type=_COUNT, help="New tokens per sequence; implies prefill."),
        click.option("--dtype", metavar="TYPE", help="Number format: bf16, fp16, fp32, tf32, fp8."),
        click.option(
            "--quant", metavar="TYPE", help="Weight format: fp8, nvfp4, mxfp4, awq, gptq, int4, none."
        ),
        click.option("--kv-dtype", metavar="TYPE", help="Number format of the KV cache."),
        click.option("--tp", type=_COUNT, help="Tensor-parallel size."),
        click.option("--ep", type=_COUNT, help="Expert-parallel size."),
        click.option("--dp", type=_COUNT, help="Data-parallel size of attention."),
        click.option("--logits", type=click.Choice(["last", "all"]), help="Rows that the LM head runs on."),
    ]
    names = ("phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tp", "ep", "dp", "logits")
    return _collect(command, options, names, "workload", lambda values: WorkloadRequest(**values))


def hardware_options(command: F) -> F:
    """Add the hardware flags; the command receives `hardware: HardwareRequest`."""
    options = [
        click.option("--gpu", metavar="NAME", help="GPU of the catalogue; see nsysmodel hardware list."),
        click.option("--bandwidth", metavar="RATE", help="DRAM bandwidth, for example 4.0TB/s."),
        click.option(
            "--peak", "peaks", multiple=True, metavar="TYPE=RATE", help="A dense peak: bf16=989TFLOPS."
        ),
        click.option("--clock", metavar="RATE", help="SM clock; recomputes every peak, for example 1.6GHz."),
        click.option(
            "--hardware-file",
            "files",
            multiple=True,
            type=click.Path(dir_okay=False),
            help="A catalogue file of your own.",
        ),
    ]
    names = ("gpu", "bandwidth", "peaks", "clock", "files")
    return _collect(command, options, names, "hardware", lambda values: HardwareRequest(**values))


def selection_options(command: F) -> F:
    """Add the selection flags; the command receives `selection: Selection`."""
    options = [
        click.option("--process", type=int, help="Judge this process only (OS pid)."),
        click.option("--device", type=int, help="Judge this device only (CUDA ordinal)."),
        click.option("--steps", callback=_steps, metavar="A-B", help="Judge these steps only."),
        click.option(
            "--nvtx",
            callback=_regex,
            metavar="REGEX",
            help="Judge kernels launched inside these NVTX ranges only.",
        ),
        click.option(
            "--time-range", callback=_time_range, metavar="S-S", help="Judge this span only, in seconds."
        ),
    ]
    names = ("process", "device", "steps", "nvtx", "time_range")
    return _collect(command, options, names, "selection", lambda values: Selection(**values))


def output_options(*formats: str, default: str) -> Callable[[F], F]:
    """Add `-f/--format`, `-o/--output` and `--force`.

    The command receives `output_format: str | None`, `output: str | None` and `force: bool`. The format
    is None where the user gave none; `chosen_format` then looks at the output's extension.
    """

    def decorate(command: F) -> F:
        command = click.option("--force", is_flag=True, help="Overwrite an existing file.")(command)
        command = click.option(
            "-o", "--output", metavar="FILE", help="Where to write; - is standard output."
        )(command)
        return click.option(
            "-f",
            "--format",
            "output_format",
            type=click.Choice(formats),
            help=f"Output format; from the extension of -o, else {default}.",
        )(command)

    return decorate


EXTENSIONS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".json": "json",
    ".csv": "csv",
    ".parquet": "parquet",
}


def chosen_format(output_format: str | None, output: str | None, default: str) -> str:
    """The format: the flag, else what the extension of `output` says, else `default`.

    >>> chosen_format(None, "out.md", "html"), chosen_format("json", "out.md", "html")
    ('markdown', 'json')
    """
    if output_format:
        return output_format
    dot = (output or "").rfind(".")
    return EXTENSIONS.get((output or "")[dot:].lower(), default) if dot >= 0 else default


def _collect(
    command: F,
    options: list[Callable[[Any], Any]],
    names: tuple[str, ...],
    into: str,
    make: Callable[[dict[str, Any]], Any],
) -> F:
    """Wrap `command` so that the flags `names` arrive as one argument `into`."""

    @functools.wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        kwargs[into] = make({name: kwargs.pop(name) for name in names})
        return command(*args, **kwargs)

    for option in reversed(options):
        wrapper = option(wrapper)
    return wrapper  # type: ignore[return-value]
