"""`nsysmodel hardware`: the catalogue, and peaks from SMs, FLOP per cycle and clock."""

from __future__ import annotations

from typing import Any

import click

from nsysmodel import units
from nsysmodel.cli.options import chosen_format, output_options
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.rows import Column, as_csv, as_json, as_table

_FILES = click.option(
    "--hardware-file", "files", multiple=True, type=click.Path(), help="A catalogue file of your own."
)
_COUNT = click.IntRange(min=1)


@click.group()
def command() -> None:
    """List and show GPUs; compute peaks from SMs, FLOP per cycle and clock."""


_LIST = [
    Column("key", "name", right=False),
    Column("device", "device", right=False),
    Column("sm_count", "SMs", units.count),
    Column("clock_hz", "clock", units.clock),
    Column("bandwidth_bytes_per_s", "bandwidth", units.bandwidth),
    Column("pin_bandwidth_bytes_per_s", "pin rate", units.bandwidth),
    Column("bf16", "bf16", units.flops),
    Column("fp8", "fp8", units.flops),
    Column("fp32", "fp32", units.flops),
    Column("memory_bytes", "memory", units.bytes_),
    Column("l2_bytes", "L2", units.bytes_),
]


@command.command("list")
@_FILES
@output_options("table", "json", "csv", default="table")
def list_(files: tuple[str, ...], output_format: str | None, output: str | None, force: bool) -> None:
    """List the devices of the catalogue: dense peaks, bandwidth, sizes."""
    from nsysmodel.hardware.catalogue import load_catalogue
    from nsysmodel.hardware.describe import to_dict

    check_writable(output, force=force, named=True)
    catalogue = load_catalogue(files)
    devices = [to_dict(catalogue.hardware(gpu)) for gpu in catalogue.gpus]
    devices += [to_dict(catalogue.hardware(cpu)) for cpu in catalogue.cpus]
    rows = [{**device, "device": device["name"], **device["peak_flop_per_s"]} for device in devices]
    kind = chosen_format(output_format, output, "table")
    if kind == "json":
        text = as_json({"schema": "nsysmodel.hardware-list/1", "devices": devices})
    elif kind == "csv":
        text = as_csv(_LIST, rows)
    else:
        text = as_table(
            _LIST, rows, foot="Peaks are dense. `nsysmodel hardware show NAME` gives the sources."
        )
    write_output(output, text, force=force, named=True)


_SHOW = [
    Column("what", "value of", right=False),
    Column("shown", ""),
    Column("source", "source", right=False),
    Column("uncertain", "uncertain", right=False),
]


@command.command()
@click.argument("name")
@click.option("--clock", help="SM clock; recomputes every peak, for example 1.6GHz.")
@click.option("--bandwidth", metavar="RATE", help="DRAM bandwidth, for example 4.0TB/s.")
@click.option("--peak", "peaks", multiple=True, metavar="TYPE=RATE", help="A dense peak: bf16=989TFLOPS.")
@_FILES
@output_options("table", "json", "csv", default="table")
def show(
    name: str,
    clock: str | None,
    bandwidth: str | None,
    peaks: tuple[str, ...],
    files: tuple[str, ...],
    output_format: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Show every value of a device with its source."""
    from nsysmodel.hardware.describe import to_dict
    from nsysmodel.hardware.resolve import Overrides, resolve

    check_writable(output, force=force, named=True)
    overrides = Overrides.parse(bandwidth=bandwidth, peaks=peaks, clock=clock, files=files)
    device = resolve(name, overrides=overrides)
    kind = chosen_format(output_format, output, "table")
    if kind == "json":
        text = as_json({"schema": "nsysmodel.hardware/1", **to_dict(device)})
    else:
        rows = _values(to_dict(device))
        machine = [Column(key, key) for key in ("what", "value", "source", "uncertain")]
        title = f"{device.key}: {device.name}" if device.key else device.name
        foot = "\n".join(f"Note: {note}." for note in device.notes)
        text = as_csv(machine, rows) if kind == "csv" else as_table(_SHOW, rows, title=title, foot=foot)
    write_output(output, text, force=force, named=True)


def _values(device: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per value: name, number, text, source."""
    rows: list[tuple[str, Any, Any]] = [
        (f"peak.{dtype}", value, units.flops) for dtype, value in device["peak_flop_per_s"].items()
    ]
    rows += [
        ("bandwidth", device["bandwidth_bytes_per_s"], units.bandwidth),
        ("pin_bandwidth", device["pin_bandwidth_bytes_per_s"], units.bandwidth),
        ("sm_count", device["sm_count"], units.count),
        ("clock", device["clock_hz"], units.clock),
        ("memory", device["memory_bytes"], units.bytes_),
        ("l2", device["l2_bytes"], units.bytes_),
    ]
    rows += [(f"link.{kind}", rate, units.bandwidth) for kind, rate in device["links_bytes_per_s"].items()]
    return [
        {
            "what": what,
            "value": value,
            "shown": show_value(value),
            "source": device["sources"].get(what, ""),
            "uncertain": device["uncertain"].get(what),
        }
        for what, value, show_value in rows
        if value is not None
    ]


_PEAK = [
    Column("dtype", "type", right=False),
    Column("flop_per_cycle", "FLOP/cycle", units.count),
    Column("units", "SMs/cores", units.count),
    Column("clock_hz", "clock", units.clock),
    Column("formula_flop_per_s", "formula", lambda value: units.flops(value, 4)),
    Column("catalogue_flop_per_s", "datasheet", lambda value: units.flops(value, 4)),
    Column("catalogue_over_formula", "datasheet/formula", units.ratio),
    Column("catalogue_source", "source of the datasheet value", right=False),
]


@command.command()
@click.argument("name", required=False)
@click.option("--dtype", metavar="TYPE", help="One number format only.")
@click.option("--clock", metavar="RATE", help="Clock of the formula, for example 1.6GHz; else the highest.")
@click.option("--sms", type=_COUNT, help="Count so many SMs only: the ceiling of a part.")
@click.option("--cores", type=_COUNT, help="Count so many CPU cores only.")
@click.option("--cpu", is_flag=True, help="Any CPU, by the following flags.")
@click.option("--simd-width", type=click.FloatRange(min=0, min_open=True), help="Elements of a register.")
@click.option(
    "--fma-per-cycle",
    type=click.FloatRange(min=0, min_open=True),
    help="FMA instructions per cycle and core.",
)
@click.option("--no-fma", is_flag=True, help="Separate multiply and add: 1 FLOP per element, not 2.")
@_FILES
@output_options("table", "json", "csv", default="table")
def peak(
    name: str | None,
    dtype: str | None,
    clock: str | None,
    sms: int | None,
    cores: int | None,
    cpu: bool,
    simd_width: float | None,
    fma_per_cycle: float | None,
    no_fma: bool,
    files: tuple[str, ...],
    output_format: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Peak = FLOP per cycle and SM x SMs x clock, beside the datasheet and their ratio.

    For a CPU: 2 x SIMD width x FMA per cycle x clock x cores, of the catalogue (grace) or by flags:

    \b
        nsysmodel hardware peak gh200 --clock 1.6GHz
        nsysmodel hardware peak --cpu --simd-width 4 --fma-per-cycle 4 --clock 3.1GHz --cores 72
    """
    from nsysmodel.hardware.resolve import dtype_name

    check_writable(output, force=force, named=True)
    wanted = dtype_name(dtype) if dtype else ""
    hertz = units.parse_clock(clock) if clock else None
    if sms and cores:
        raise click.UsageError("--sms and --cores say the same: give one of them.")
    if cpu or simd_width or fma_per_cycle or no_fma:
        rows = [_cpu_row(name, wanted, hertz, sms or cores, simd_width, fma_per_cycle, no_fma)]
        title = "CPU by flags: 2 × SIMD width × FMA/cycle × clock × cores"
        title = title.replace("2 ×", "1 ×") if no_fma else title
    else:
        if not name:
            raise click.UsageError(
                "Name a device (see nsysmodel hardware list), or describe a CPU with --cpu."
            )
        title, rows = _device_rows(name, wanted, hertz, sms or cores, files)
    kind = chosen_format(output_format, output, "table")
    if kind == "json":
        text = as_json({"schema": "nsysmodel.hardware-peak/1", "device": title, "peaks": rows})
    else:
        text = as_csv(_PEAK, rows) if kind == "csv" else as_table(_PEAK, rows, title=title)
    write_output(output, text, force=force, named=True)


def _device_rows(
    name: str, dtype: str, clock_hz: float | None, count: int | None, files: tuple[str, ...]
) -> tuple[str, list[dict[str, Any]]]:
    from nsysmodel.hardware.catalogue import load_catalogue
    from nsysmodel.hardware.describe import ceilings

    device = load_catalogue(files).find(name)
    rows = [
        {
            "dtype": row.dtype,
            "flop_per_cycle": row.flop_per_cycle,
            "units": row.units or None,
            "clock_hz": row.clock_hz or None,
            "formula_flop_per_s": row.formula_flop_per_s,
            "catalogue_flop_per_s": row.catalogue_flop_per_s,
            "catalogue_over_formula": row.catalogue_over_formula,
            "catalogue_source": row.catalogue_source or None,
        }
        for row in ceilings(device, dtype=dtype, clock_hz=clock_hz, units=count)
    ]
    return device.name, rows


def _cpu_row(
    name: str | None,
    dtype: str,
    clock_hz: float | None,
    cores: int | None,
    simd_width: float | None,
    fma_per_cycle: float | None,
    no_fma: bool,
) -> dict[str, Any]:
    from nsysmodel.hardware.peaks import cpu_peak

    if name:
        raise click.UsageError(f"A CPU by flags has no name: drop {name!r}, or drop --cpu and its flags.")
    missing = [
        flag
        for flag, value in (
            ("--simd-width", simd_width),
            ("--fma-per-cycle", fma_per_cycle),
            ("--clock", clock_hz),
        )
        if not value
    ]
    if missing or simd_width is None or fma_per_cycle is None or clock_hz is None:
        raise click.UsageError(f"A CPU by flags needs {' and '.join(missing)} too.")
    flop = 1 if no_fma else 2
    count = cores or 1
    return {
        "dtype": dtype or None,
        "flop_per_cycle": flop * simd_width * fma_per_cycle,
        "units": count,
        "clock_hz": clock_hz,
        "formula_flop_per_s": cpu_peak(simd_width, fma_per_cycle, clock_hz, count, flop_per_instruction=flop),
        "catalogue_flop_per_s": None,
        "catalogue_over_formula": None,
        "catalogue_source": None,
    }
