"""`nsysmodel roofline`: ridge points, bounds of matrix products, measurements against the roof."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmodel.cli.options import chosen_format, hardware_options, output_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.request import HardwareRequest

if TYPE_CHECKING:
    from nsysmodel.cli.roofline_tables import RooflineAnswer
    from nsysmodel.hardware.types import Hardware
    from nsysmodel.theory.roofline import Shape


@click.command()
@click.argument("export", required=False, type=click.Path())
@click.option("--gemm", "sizes", multiple=True, metavar="MxNxK", help="A matrix product; one N is a cube.")
@click.option(
    "--dtype", "dtypes", multiple=True, metavar="TYPE", help="Number format; bf16 where none is given."
)
@click.option("--cache", metavar="SIZE", help="Fast memory for the cache bound instead of L2: 50MB, or 0B.")
@click.option(
    "--t0", metavar="TIME", help="Fixed cost of a launch, for the size that still reaches --fraction."
)
@click.option(
    "--fraction",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="Part of the peak that --t0 asks for.",
)
@click.option("--measurements", metavar="FILE.csv", help="Lines of size,seconds; judged against the roof.")
@click.option("--kernel", metavar="REGEX", help="Kernels of EXPORT that are the matrix products.")
@click.option("--bytes", "bytes_", metavar="SIZE", help="With --time: are so many bytes possible?")
@click.option("--flop", metavar="COUNT", help="With --time: is so much work possible?")
@click.option("--time", "time_", metavar="TIME", help="A measured time.")
@hardware_options
@output_options("table", "json", "csv", "svg", default="table")
def command(
    export: str | None,
    sizes: tuple[str, ...],
    dtypes: tuple[str, ...],
    cache: str | None,
    t0: str | None,
    fraction: float,
    measurements: str | None,
    kernel: str | None,
    bytes_: str | None,
    flop: str | None,
    time_: str | None,
    hardware: HardwareRequest,
    output_format: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Ridge points and bounds of a GPU; judge measurements against them.

    \b
        nsysmodel roofline --gpu gh200
        nsysmodel roofline --gpu gh200 --gemm 512 --dtype tf32 --t0 12.5us
        nsysmodel roofline --gpu h100 --dtype bf16 --measurements gemm.csv -o gemm.svg
        nsysmodel roofline sweep.sqlite --kernel 'sgemm' --dtype fp32 --gemm 1024 --gemm 2048
        nsysmodel roofline --gpu grace --bytes 4GB --flop 0 --time 1ns
    """
    from nsysmodel import units
    from nsysmodel.cli import roofline_tables as tables

    check_writable(output, force=force, named=True)
    _check(export, sizes, measurements, kernel, bytes_, flop, time_)
    device = _device(hardware, export)
    engines = _engines(dtypes)
    cache_bytes = units.parse_bytes(cache) if cache else None
    if time_:
        amount = units.parse_bytes(bytes_) if bytes_ else 0.0
        work = units.parse_count(flop) if flop else 0.0
        answer = tables.is_possible(
            device, amount, work, units.parse_time(time_), engines[0] if dtypes else ""
        )
    elif export or measurements:
        pairs = _measured(export, measurements, kernel, sizes)
        answer = tables.measured(device, engines[0], pairs, cache_bytes)
    elif sizes:
        answer = tables.bounds(device, engines, sizes, cache_bytes)
    else:
        answer = tables.ridge_table(device, engines if dtypes else None, cache_bytes)
    if t0:
        answer = tables.with_fixed_cost(answer, device, engines, units.parse_time(t0), fraction)
    default = "svg" if (output or "").endswith(".svg") else "table"
    write_output(
        output, _text(answer, chosen_format(output_format, output, default)), force=force, named=True
    )


def _check(
    export: str | None,
    sizes: tuple[str, ...],
    measurements: str | None,
    kernel: str | None,
    bytes_: str | None,
    flop: str | None,
    time_: str | None,
) -> None:
    """One question at a time."""
    if export and measurements:
        raise click.UsageError("Give an export or --measurements, not both.")
    if export and not (kernel and sizes):
        raise click.UsageError(
            "An export needs --kernel, which kernels are the products, and one --gemm for each size in order."
        )
    if kernel and not export:
        raise click.UsageError("--kernel picks kernels of an export: name one.")
    if bool(bytes_ or flop) != bool(time_):
        raise click.UsageError("Whether a measurement is possible needs --time and one of --bytes, --flop.")
    if time_ and (export or measurements or sizes):
        raise click.UsageError("--bytes, --flop and --time are a question of their own.")
    if measurements and sizes:
        raise click.UsageError("--measurements has its sizes in the file: drop --gemm.")


def _device(request: HardwareRequest, export: str | None) -> Hardware:
    from nsysmodel.hardware.resolve import Overrides, resolve

    overrides = Overrides.parse(
        bandwidth=request.bandwidth, peaks=request.peaks, clock=request.clock, files=request.files
    )
    if request.gpu or not export:
        return resolve(request.gpu, overrides=overrides)
    from nsysmodel.cli.sweep import gpu_of

    return resolve(facts=gpu_of(export), overrides=overrides)


def _engines(dtypes: tuple[str, ...]) -> list[str]:
    from nsysmodel.hardware.resolve import dtype_name

    return list(dict.fromkeys(dtype_name(dtype) for dtype in dtypes)) or ["bf16"]


def _measured(
    export: str | None, measurements: str | None, kernel: str | None, sizes: tuple[str, ...]
) -> list[tuple[Shape, float]]:
    from nsysmodel.cli.measurements import parse_shape, read_pairs

    if measurements:
        return read_pairs(measurements, parse_shape, "size")
    from nsysmodel.cli.sweep import sweep

    return sweep(export or "", kernel or "", [parse_shape(size) for size in sizes])


def _text(answer: RooflineAnswer, kind: str) -> str:
    if kind != "svg":
        return answer.text(kind)
    if not answer.roofs:
        raise click.UsageError("This answer has no drawing: use table, json or csv.")
    from nsysmodel.report.roofline_svg import roofline_svg

    return roofline_svg(answer.title, answer.roofs, answer.points)
