"""Kernels that read over a link, in flat and layered model files."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmodel.errors import ModelError
from nsysmodel.hardware.resolve import resolve
from nsysmodel.model import LayeredSpec, load, resolve_workload
from nsysmodel.theory.floor import floor_of
from nsysmodel.workload import WorkloadRequest

LAYERED = """
name: offloaded
architecture: {hidden: 2048, vocab: 1000, layers: 2, expert_intermediate: 768}
layer_kinds:
  one:
    - {id: expert_gather, kind: zero_copy, bytes: 3*hidden*expert_intermediate*act_bytes, threads: 8192,
       latency: 596}
    - {id: peer_gather, kind: zero_copy, bytes: 1000000, threads: 1e6, latency: 500, link: nvlink}
layers: [one, one]
head: []
tail: []
"""
FLAT = "name: flat\nkernels:\n  - {name: gather, pattern: gather, bytes: 10, FIELDS}\n"


def written(folder: Path, text: str) -> str:
    path = folder / "model.yaml"
    path.write_text(text)
    return str(path)


def test_layered_op_is_bound_by_what_is_in_flight(tmp_path: Path) -> None:
    spec = load(written(tmp_path, LAYERED))
    assert isinstance(spec, LayeredSpec)
    step = spec.build(resolve_workload(WorkloadRequest(), spec))
    own, peer = step.kinds["one"]
    gh200 = resolve("gh200")
    floor = floor_of(own.cost, gh200)
    assert (own.cost.link_bytes, floor.bound) == (9_437_184, "link")
    assert floor.ns == pytest.approx(42_912, rel=1e-4)
    # With enough in flight the link decides: NVLink here.
    assert floor_of(peer.cost, gh200).ns == pytest.approx(1e6 / gh200.links["nvlink"].bytes_per_s * 1e9)
    # Twice the work takes twice the time.
    assert floor_of(own.cost * 2, gh200).ns == pytest.approx(2 * floor.ns)
    assert step.cost.link_bytes == 2 * (9_437_184 + 1_000_000)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("kind: zero_copy, latency: 500", "needs threads"),
        ("kind: zero_copy, threads: 1024", "needs latency"),
        ("threads: 1024", "only an entry with kind: zero_copy"),
        ("link: pcie", "only an entry with kind: zero_copy"),
        ("kind: zero_copy, threads: 1024, latency: 500, link: usb", "not accepted"),
        ("kind: zero_copy, threads: 1024, latency: nowhere", "nowhere"),
    ],
)
def test_incomplete_entries_are_refused(fields: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=problem):
        load(written(tmp_path, FLAT.replace("FIELDS", fields)))


def test_link_of_a_layered_op_is_checked(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="usb"):
        load(written(tmp_path, LAYERED.replace("link: nvlink", "link: usb")))
