"""`nsysmodel scale`: how far N devices can go, by law and by measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmodel.cli.options import chosen_format, hardware_options, output_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.request import HardwareRequest

if TYPE_CHECKING:
    from nsysmodel.theory.scaling import Communication

_FRACTION = click.FloatRange(0, 1)
_COUNT = click.IntRange(min=1)


@click.command()
@click.argument("exports", nargs=-1, metavar="[N=EXPORT]...")
@click.option("-p", "--parallel", type=_FRACTION, help="Parallel part of the work (Amdahl, Gustafson): 0.95.")
@click.option(
    "-n", "--devices", "counts", multiple=True, type=_COUNT, help="Number of devices; may be repeated."
)
@click.option(
    "--max-devices", type=click.IntRange(1, 100_000), default=64, show_default=True, help="Largest N."
)
@click.option("--parallel-time", metavar="TIME", help="Time on one device of the part that divides: 1.62ms.")
@click.option(
    "--serial-time", metavar="TIME", default="0ns", show_default=True, help="Time that does not divide."
)
@click.option("--layers", type=_COUNT, help="Tensor-parallel decode: layers, two all-reduces each.")
@click.option("--hidden", type=_COUNT, help="Hidden size; an all-reduce has batch x hidden numbers.")
@click.option("--batch", type=_COUNT, default=1, show_default=True, help="Sequences in a step.")
@click.option("--dtype", default="bf16", show_default=True, metavar="TYPE", help="Format of the activations.")
@click.option("--collectives", type=_COUNT, help="All-reduces in a step, instead of --layers.")
@click.option("--size", metavar="SIZE", help="Bytes of one all-reduce, instead of --hidden.")
@click.option(
    "--link", metavar="RATE", help="Link of a device, one direction; else the GPU's NVLink, else PCIe."
)
@click.option(
    "--latency", metavar="TIME", default="0ns", show_default=True, help="Latency of one step of it."
)
@click.option(
    "--algorithm",
    type=click.Choice(["ring", "one_shot", "two_shot", "nvls"]),
    default="ring",
    show_default=True,
    help="All-reduce.",
)
@click.option("--measurements", metavar="FILE.csv", help="Lines of N,seconds; fits the law to them.")
@click.option("--model", metavar="MODEL", help="Model of the exports: its structure helps to find the steps.")
@click.option("--weak", is_flag=True, help="The problem grew with N: give weak efficiency, fit nothing.")
@hardware_options
@output_options("table", "json", "csv", default="table")
def command(
    exports: tuple[str, ...],
    parallel: float | None,
    counts: tuple[int, ...],
    max_devices: int,
    parallel_time: str | None,
    serial_time: str,
    layers: int | None,
    hidden: int | None,
    batch: int,
    dtype: str,
    collectives: int | None,
    size: str | None,
    link: str | None,
    latency: str,
    algorithm: str,
    measurements: str | None,
    model: str | None,
    weak: bool,
    hardware: HardwareRequest,
    output_format: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Amdahl, Gustafson and communication: how far N devices can go.

    \b
        nsysmodel scale -p 0.95 -n 8
        nsysmodel scale --parallel-time 1.62ms --layers 48 --hidden 2048 --gpu h100 --latency 1us
        nsysmodel scale --measurements times.csv
        nsysmodel scale 1=tp1.sqlite 2=tp2.sqlite 4=tp4.sqlite
    """
    from nsysmodel import units
    from nsysmodel.cli import scale_tables as tables

    check_writable(output, force=force, named=True)
    questions = [parallel is not None, bool(parallel_time), bool(measurements), bool(exports)]
    if sum(questions) != 1:
        raise click.UsageError(
            "Ask one thing: --parallel (the laws), --parallel-time (with communication), "
            "--measurements or N=EXPORT (a fit)."
        )
    if parallel is not None:
        answer = tables.laws(parallel, _counts(counts, max_devices))
    elif parallel_time:
        comm = _communication(
            layers, hidden, batch, dtype, collectives, size, link, latency, algorithm, hardware
        )
        answer = tables.with_communication(
            units.parse_time(serial_time), units.parse_time(parallel_time), comm, counts, max_devices
        )
    else:
        pairs = tables.pairs_of(measurements) if measurements else tables.pairs_of_exports(exports, model)
        answer = tables.measured(pairs, weak=weak)
    text = answer.text(chosen_format(output_format, output, "table"))
    write_output(output, text, force=force, named=True)


def _counts(counts: tuple[int, ...], largest: int) -> list[int]:
    """The asked numbers of devices, else powers of two."""
    if counts:
        return sorted(set(counts))
    return [2**power for power in range(largest.bit_length()) if 2**power <= largest]


def _communication(
    layers: int | None,
    hidden: int | None,
    batch: int,
    dtype: str,
    collectives: int | None,
    size: str | None,
    link: str | None,
    latency: str,
    algorithm: str,
    hardware: HardwareRequest,
) -> Communication:
    """The all-reduces of a step; tensor-parallel decode has two a layer."""
    from nsysmodel import units
    from nsysmodel.hardware.resolve import dtype_name
    from nsysmodel.theory.roofline import element_bytes
    from nsysmodel.theory.scaling import Communication

    if layers and collectives:
        raise click.UsageError("--layers and --collectives say the same: give one of them.")
    if hidden and size:
        raise click.UsageError("--hidden and --size say the same: give one of them.")
    number = 2 * layers if layers else collectives or 0
    one = units.parse_bytes(size) if size else batch * (hidden or 0) * element_bytes(dtype_name(dtype))
    if bool(number) != bool(one):
        raise click.UsageError("All-reduces need a number (--layers) and a size (--hidden).")
    rate = units.parse_bandwidth(link) if link else _link_of(hardware)
    if number and rate is None:
        raise click.UsageError("All-reduces need a link: give --link 450GB/s, or --gpu.")
    return Communication(
        collectives=number,
        size_bytes=one,
        link_bytes_per_s=rate if rate is not None else float("inf"),
        latency_ns=units.parse_time(latency),
        algorithm=algorithm,  # type: ignore[arg-type]
    )


def _link_of(request: HardwareRequest) -> float | None:
    if not request.gpu:
        return None
    from nsysmodel.hardware.resolve import Overrides, resolve

    links = resolve(request.gpu, overrides=Overrides(files=request.files)).links
    found = links.get("nvlink") or links.get("pcie")
    return found.bytes_per_s if found else None
