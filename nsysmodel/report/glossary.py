"""The words of the report, each in plain sentences."""

from __future__ import annotations

_TEXT = """\
step
    One pass of the model: one decoded token per sequence, or one prefill pass. Its window runs to
    the start of the next step, so the idle time before that belongs to it.
op
    An operation that the model expects, such as qkv_proj or attention. One kernel may serve
    several.
floor
    The time that physics asks for: the largest of FLOP over peak, bytes over bandwidth, and link
    bytes over link rate. Bytes are weights, KV cache and state; activations count where they exceed
    half of L2.
ratio
    Measured time over floor. Below 1 is impossible: data that stayed in L2, a wrong workload, or a
    wrong peak.
excess
    Measured time minus floor.
recoverable
    What the step would gain if the op ran at its floor; where latency bounds it, at what its launches
    cost at least; a collective, without its waiting. At most the time in which the op alone keeps the
    device busy, since shortening what runs beside something else gains nothing.
bound
    The roof that decides the floor: memory, compute, link; latency where the floor is shorter than
    a launch, so that no ratio means anything.
roofline
    Floor of the step over its measured time, as a percentage.
launches
    The floor of an op that latency bounds: so many launches, each at least as long as the shortest
    kernels of this export (T0). What lies between it and the measured time is not launch cost.
launch-bound
    An op so small that the launch decides its time. A faster kernel hardly helps; fewer launches do:
    fusing it with its neighbours.
every weight once
    A bound that needs no ops: each weight of the step read once at full bandwidth. The sum of
    floors must lie above it.
unmodeled
    Measured kernel time that no op claims.
missing
    An op that the model expects and no kernel serves; perhaps it is fused into another kernel.
idle
    Time in which the device runs nothing at all. Causes: inside graph (between nodes of a CUDA
    graph), launch starved (the launch came after the device ran dry), sync (the host waited in a
    synchronize call), dependency (launched in time, waited for another stream), profiler (its own
    overhead).
overlap
    Time in which activities ran at once; it is counted in each, so it is subtracted once.
confidence
    How sure the matching of kernels with an op is, from 0 to 1.
assumed
    Neither given nor found in the export; the default of the model file. A different value changes
    every floor that depends on it.
l2 resident
    A flag: the op's data may have stayed in L2, so it can beat its floor.
beats floor
    A flag: faster than possible; do not trust this row before it is explained.
wrong workload
    A flag: another batch, context or number format would explain the time.
wrong peak
    A flag: the peak or bandwidth of the device seems to be wrong.
wait included
    A flag: the kernel's time contains waiting, as collectives wait for their peers.
low confidence
    A flag: the kernels of this op were hard to tell from others.
"""


def _parse(text: str) -> tuple[tuple[str, str], ...]:
    entries: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(" "):
            entries[-1].append(line.strip())
        else:
            entries.append([line])
    return tuple((word, " ".join(meaning)) for word, *meaning in entries)


WORDS = _parse(_TEXT)
