"""Which device of one run stands for which of another."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmodel.comparison.snapshot import DeviceSnapshot, Snapshot
from nsysmodel.errors import ExportError
from nsysmodel.result import Diagnostic

Devices = Sequence[DeviceSnapshot]
"""One device of each run of a side."""


def device_pairs(
    a: Sequence[Snapshot], b: Sequence[Snapshot]
) -> tuple[list[tuple[Devices, Devices]], list[Diagnostic]]:
    """Devices by ordinal and rank of their process; the only device of a run always stands for the other."""
    keyed = [[_keys(run) for run in side] for side in (a, b)]
    if all(len(run.devices) == 1 for run in (*a, *b)):
        only: tuple[Devices, Devices] = ([run.devices[0] for run in a], [run.devices[0] for run in b])
        return [only], []
    first = list(keyed[0][0])
    shared = [key for key in first if all(key in run for side in keyed for run in side)]
    if not shared:
        raise ExportError(
            "A and B used different devices.", "Choose one on each side with --device and --process."
        )
    pairs: list[tuple[Devices, Devices]] = [
        ([run[key] for run in keyed[0]], [run[key] for run in keyed[1]]) for key in shared
    ]
    extra = sorted({key[0] for side in keyed for run in side for key in run if key not in shared})
    notes = [
        Diagnostic("unpaired_device", "warning", f"Device {device} is not on both sides and is left out.", "")
        for device in extra
    ]
    return pairs, notes


def _keys(run: Snapshot) -> dict[tuple[int, int], DeviceSnapshot]:
    ranks: dict[int, int] = {}
    found = {}
    for device in sorted(run.devices, key=lambda d: (d.device, d.process)):
        rank = ranks.get(device.device, 0)
        ranks[device.device] = rank + 1
        found[device.device, rank] = device
    order = {id(device): place for place, device in enumerate(run.devices)}
    return dict(sorted(found.items(), key=lambda item: order[id(item[1])]))
