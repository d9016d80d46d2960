"""Work that runs beside the main chain: shared experts and second expert tiers on streams of their own.

Kernels of a step are put in one order by their start. Where streams really run side by side that order mixes
two chains, and neither could be aligned. So runs of a stream that overlap with a heavier run of another one
are taken out, and each is aligned on its own with the layer that it falls into.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from nsysmodel.join.labels import Chain, serves
from nsysmodel.join.sequence import Sequence
from nsysmodel.join.template import FORBIDDEN, Template
from nsysmodel.join.types import Bools, Bundle, Ints
from nsysmodel.join.viterbi import Costs, Path, best_path

PAUSE_NS = 12_000
"""Idle time of a stream that ends a run."""
OVERLAP_NS = 1500
"""Overlap of two runs below which they are neighbours in time: dependent launches begin a little early."""
NEAR_SLOTS = 4
"""Slots around the fork that a side run may serve without surprise, and a layer's first slots."""
BEHIND = 2.5
"""Cost of a side run serving what lies before the place at which it left the main chain."""
SERVED_TWICE = 0.4
"""Cost of a side run serving what the main chain served already (a second tier of experts)."""


def side_runs(kernels: pd.DataFrame, rows: Ints) -> tuple[Ints, list[Ints]]:
    """Split rows (by start) into the main chain and runs beside it, all by start."""
    stream = kernels["stream"].to_numpy(np.int64)[rows]
    if (stream == stream[:1]).all():
        return rows, []
    start = kernels["start_ns"].to_numpy(np.int64)[rows]
    end = kernels["end_ns"].to_numpy(np.int64)[rows]
    run = _runs(start, end, stream)
    count = int(run.max()) + 1
    first, last = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first, run, start)
    np.maximum.at(last, run, end)
    work = np.bincount(run, weights=end - start, minlength=count)
    side = _beside(first, last, work)
    if not side.any():
        return rows, []
    aside = side[run]
    members = np.flatnonzero(aside)
    by_run = members[np.argsort(run[members], kind="stable")]
    cuts = np.flatnonzero(np.diff(run[by_run])) + 1
    return rows[~aside], [rows[part] for part in np.split(by_run, cuts)]


def _runs(start: Ints, end: Ints, stream: Ints) -> Ints:
    """Number of the run that each kernel belongs to: a stream without a pause."""
    order = np.lexsort((start, stream))
    s, e, lane = start[order], end[order], stream[order]
    new = np.ones(len(order), bool)
    new[1:] = (lane[1:] != lane[:-1]) | (s[1:] - e[:-1] > PAUSE_NS)
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(new) - 1
    return run


def _beside(first: Ints, last: Ints, work: np.ndarray) -> Bools:
    """Runs that overlap with a heavier run which itself belongs to the main chain."""
    side = np.zeros(len(first), bool)
    order = np.argsort(first, kind="stable")
    reach = np.maximum.accumulate(last[order])
    apart = np.concatenate(([True], first[order][1:] >= reach[:-1] - OVERLAP_NS))
    edges = np.append(np.flatnonzero(apart), len(order))
    several = np.flatnonzero(np.diff(edges) > 1)
    for low, high in zip(edges[several].tolist(), edges[several + 1].tolist(), strict=True):
        cluster = order[low:high]
        main: list[int] = []
        for run in cluster[np.argsort(-work[cluster], kind="stable")].tolist():
            shared = [min(last[run], last[m]) - max(first[run], first[m]) for m in main]
            if shared and max(shared) > OVERLAP_NS:
                side[run] = True
            else:
                main.append(run)
    return side


def attach_sides(
    template: Template,
    path: Path,
    costs: Costs,
    sequence: Sequence,
    main: Ints,
    sides: list[Ints],
    chain: Chain,
) -> tuple[Ints, Chain]:
    """The chain with the side runs in it, and the rows of the whole chain by start."""
    rows = np.concatenate([main, *sides])
    names, places = list(chain.labels), list(chain.bundles)
    parts: list[tuple[Ints, Ints, np.ndarray, np.ndarray, Ints]] = []
    steps: list[Ints] = []
    layers: list[Ints] = []
    known: dict[tuple[object, ...], Path] = {}
    pass_of: Ints = np.cumsum(path.entered)
    for side in sides:
        ids = sequence.identity[side]
        options = []
        for at in _forks(path, pass_of, int(np.searchsorted(main, side[0])) - 1):
            group, passed = int(path.group[at]), int(path.slot[at])
            served = _served(path, pass_of, at)
            key = (group, passed, served, tuple(ids.tolist()))
            if key not in known:
                known[key] = _align(template, costs, group, passed, served, ids)
            options.append((known[key].cost, at, group, served, known[key]))
        if not options:
            parts.append(_nothing(len(side), ids))
            steps.append(np.full(len(side), -1, np.int64))
            layers.append(np.full(len(side), -1, np.int64))
            continue
        _, at, group, served, own = min(options, key=lambda option: option[0])
        parts.append(_labels(template, sequence, own, group, served, ids, names, places))
        steps.append(np.full(len(side), chain.step[at], np.int64))
        layers.append(np.full(len(side), chain.layer[at], np.int64))
    op, bundle, first, confidence = (
        np.concatenate([getattr(chain, name), *(part[index] for part in parts)])
        for index, name in enumerate(("op", "bundle", "first", "confidence"))
    )
    order = np.argsort(rows, kind="stable")
    whole = replace(
        chain,
        op=op[order],
        bundle=bundle[order],
        first=first[order],
        confidence=confidence[order],
        step=np.concatenate([chain.step, *steps])[order],
        layer=np.concatenate([chain.layer, *layers])[order],
        group=np.concatenate([chain.group, np.full(len(rows) - len(main), -1, np.int64)])[order],
        labels=tuple(names),
        bundles=tuple(places),
    )
    return rows[order], whole


def _forks(path: Path, pass_of: Ints, at: int) -> list[int]:
    """Places of the main chain that a side run may have left: where it starts, and the pass before.

    Shared experts may still run when the main chain has entered the next layer.
    """
    while at >= 0 and path.slot[at] < 0:
        at -= 1
    if at < 0:
        return []
    found = [at]
    if path.slot[at] < NEAR_SLOTS:
        before = int(np.searchsorted(pass_of, pass_of[at], side="left")) - 1
        while before >= 0 and path.slot[before] < 0:
            before -= 1
        if before >= 0:
            found.append(before)
    return found


def _nothing(count: int, ids: Ints) -> tuple[Ints, Ints, np.ndarray, np.ndarray, Ints]:
    """Labels of a run that belongs to no pass."""
    none = np.full(count, -1, np.int64)
    return none, none.copy(), np.zeros(count, bool), np.zeros(count), ids


def _served(path: Path, pass_of: Ints, at: int) -> tuple[int, ...]:
    """Slots that the pass through the group at this place of the main chain serves."""
    low = int(np.searchsorted(pass_of, pass_of[at], side="left"))
    high = int(np.searchsorted(pass_of, pass_of[at], side="right"))
    slots = path.slot[low:high]
    return tuple(np.unique(slots[slots >= 0]).tolist())


def _align(
    template: Template, costs: Costs, group: int, passed: int, served: tuple[int, ...], ids: Ints
) -> Path:
    """Align a side run with one group, in which nothing that it does not serve is missing."""
    width = template.slot_op.shape[1]
    single = Template(
        (template.groups[group],),
        template.ops,
        template.slot_op[group : group + 1],
        np.zeros((1, width)),
        np.full((1, 1), FORBIDDEN),
        np.zeros(1),
        np.zeros(1),
        (),
        np.ones(1),
        0.0,
        FORBIDDEN,
    )
    enter = costs.enter[:, group : group + 1].copy()
    enter[:, 0, list(served)] += SERVED_TWICE
    enter[:, 0, : max(0, passed - NEAR_SLOTS)] += BEHIND
    own = slice(group, group + 1)
    return best_path(single, Costs(enter, costs.stay[:, own], costs.extra, costs.opening[:, own]), ids)


def _labels(
    template: Template,
    sequence: Sequence,
    path: Path,
    group: int,
    served: tuple[int, ...],
    ids: Ints,
    names: list[str],
    places: list[Bundle],
) -> tuple[Ints, Ints, np.ndarray, np.ndarray, Ints]:
    """(op, bundle, first, confidence) of the kernels of a side run."""
    count = len(ids)
    op, bundle = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    first, confidence = np.zeros(count, bool), np.zeros(count)
    for i in range(count):
        slot = int(path.slot[i])
        if slot < 0:
            continue
        label, place = serves(
            template,
            sequence.identities[ids[i]],
            group,
            slot,
            int(path.stayed[i]),
            int(path.came_from[i]),
            slot,
        )
        if label not in names:
            names.append(label)
        if place not in places:
            places.append(place)
        op[i], bundle[i] = names.index(label), places.index(place)
        first[i] = not path.stayed[i] and slot not in served
        confidence[i] = 0.9 if not path.stayed[i] else 0.8
    return op, bundle, first, confidence, ids
