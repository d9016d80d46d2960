"""Palette contrast, waterfall closure, drawings, cells and commands."""

from __future__ import annotations

import dataclasses
import re
import shlex

import pytest
import sample
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.report import (
    account,
    charts,
    facts,
    kernels,
    ncu,
    ops,
    palette,
    sections,
    sources,
    timeline,
    view,
)
from nsysmodel.report.columns import TIME, unit_for
from nsysmodel.report.svg import Scale, decades, element, ticks
from nsysmodel.report.text import clean, cut
from nsysmodel.result import LayerHeat, MissingRow, Timeline, TimelineBar, WaterfallPart


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_contrast(theme: str) -> None:
    ground = palette.GROUND[theme]
    for name, colour in palette.TEXT[theme].items():
        assert palette.contrast(colour, ground) >= 4.5, name
    for name, colour in palette.MARKS[theme].items():
        assert palette.contrast(colour, ground) >= 3, name


def test_every_mark_has_both_themes() -> None:
    assert palette.MARKS["light"].keys() == palette.MARKS["dark"].keys()
    assert {f"r{k}" for k in range(palette.RANKS + 1)} <= palette.MARKS["light"].keys()


part = st.builds(
    WaterfallPart,
    kind=st.sampled_from(["floor", "excess", "unmodeled", "copy", "gap", "overlap"]),
    label=st.text(max_size=8),
    total_ns=st.integers(-(10**12), 10**12),
    op=st.none() | st.sampled_from(["a", "b", "c"]),
    cause=st.none() | st.sampled_from(["sync", "unknown"]),
)


@given(st.lists(part, max_size=30), st.booleans())
def test_grouping_the_account_loses_nothing(parts: list[WaterfallPart], judged: bool) -> None:
    total = sum(item.total_ns for item in parts)
    device = sample.device(waterfall=tuple(parts), window_total_ns=total)
    water = account.waterfall(device, judged=judged)
    assert water.closes
    position = 0
    for row in water.rows:
        assert row.start_ns == position
        position = row.end_ns
    assert position == total


def test_account_that_does_not_close_says_so() -> None:
    device = sample.device()
    broken = dataclasses.replace(device, window_total_ns=device.window_total_ns + 1)
    assert account.waterfall(device, judged=True).closes
    assert not account.waterfall(broken, judged=True).closes


def test_ops_below_their_floor_are_told_apart() -> None:
    parts = (WaterfallPart("floor", "", 100), WaterfallPart("excess", "a", -7, op="a"))
    water = account.waterfall(sample.device(waterfall=parts, window_total_ns=93), judged=True)
    assert [(row.kind, row.op) for row in water.rows] == [("floor", None), ("below", "a")]


def test_what_helps_stays_apart_in_the_account() -> None:
    ops_of = {row.op: row for row in sample.device().ops}
    wait = dataclasses.replace(ops_of["o_proj"], flags=("wait_included",))
    chosen = (ops_of["moe_down"], ops_of["router"], ops_of["topk"], wait)
    parts = tuple(
        WaterfallPart("excess", name, ns, op=name)
        for name, ns in (("moe_down", 50), ("router", 20), ("topk", 1), ("o_proj", 29))
    )
    water = account.waterfall(sample.device(waterfall=parts, window_total_ns=100, ops=chosen), judged=True)
    assert [(row.label, row.kind, row.total_ns) for row in water.rows] == [
        ("moe_down", "excess", 50),
        ("router", "launch", 20),
        ("1 other launch-bound op", "launch", 1),
        ("o_proj", "comm", 29),
    ]


@given(st.text(max_size=300), st.integers(2, 100))
def test_clean_text_prints_on_one_line(raw: str, limit: int) -> None:
    shown = clean(raw, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
    shown.encode("utf-8")


@given(st.text(max_size=50), st.integers(1, 40))
def test_cut_keeps_the_width(raw: str, width: int) -> None:
    assert len(cut(raw, width)) <= width


@given(st.text(max_size=400))
def test_ncu_command_is_one_harmless_command(name: str) -> None:
    words = shlex.split(ncu.command(name, 3))
    assert words[0] == "ncu"
    assert words[-2:] == ["--", "YOUR_COMMAND"]
    assert not set(ncu.command(name, 3)) & set('$`\\"!;|&*\n')
    pattern = words[words.index("-k") + 1].removeprefix("regex:")
    re.compile(pattern)


def test_ncu_pattern_fits_its_own_kernel() -> None:
    for name in (
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int>(float*)",
        "void cutlass::device_kernel<flash::enable_sm90<(int)2>>(T1::Params)",
    ):
        words = shlex.split(ncu.command(name, 0))
        assert re.search(words[words.index("-k") + 1].removeprefix("regex:"), name)


def test_ncu_pattern_tells_kernels_of_one_family_apart() -> None:
    family = "void cutlass::device_kernel<" + "flash::Mainloop<" * 20
    mine, other = family + "(int)1>(P)", family + "(int)2>(P)"
    pattern = shlex.split(ncu.command(mine, 0, [mine, other]))[6].removeprefix("regex:")
    assert re.search(pattern, mine)
    assert not re.search(pattern, other)


@pytest.mark.parametrize(
    ("values", "name", "shown"),
    [
        ([950.0], "ns", "950"),
        ([684_480.0, 9_800.0], "µs", "684.5"),
        ([4_043_000.0], "ms", "4.04"),
        ([2_056_900.0], "µs", "2,056.9"),
        ([841_253_000_000.0], "s", "841.3"),
    ],
)
def test_column_units(values: list[float], name: str, shown: str) -> None:
    unit = unit_for(values, TIME)
    assert unit.name == name
    assert unit.text(values[0]) == shown


def test_scales_and_ticks() -> None:
    assert Scale(1, 1000, 0, 30, log=True)(10) == pytest.approx(10)
    assert decades(1, 1000) == [1, 10, 100, 1000]
    assert ticks(0.9, 5) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert ticks(0) == [0.0]


def test_elements_escape() -> None:
    assert element("title", "</title><script>", cls='"x') == (
        '<title class="&#34;x">&lt;/title&gt;&lt;script&gt;</title>'
    )


def test_roofline_draws_what_belongs_there() -> None:
    device = sample.device()
    rows = ops.ranked(device, judged=True)
    drawn = charts.roofline(rows, ops.ranks(rows), 4e12, [("bf16", 990e12)], "x")
    assert drawn is not None
    judged = [row for row in rows if row.bound != "latency"]
    assert drawn.count("<circle") == len(judged)
    assert "990 TFLOPS" in drawn
    assert "4 TB/s" in drawn
    assert charts.roofline(rows, {}, 4e12, [], "x") is None


def test_compute_bound_ops_have_another_shape() -> None:
    row = dataclasses.replace(sample.device().ops[1], bound="compute")
    drawn = charts.roofline([row], {}, 4e12, [("bf16", 990e12)], "x")
    assert drawn is not None
    assert "<circle" not in drawn
    assert "l" in drawn


def test_strip_shows_judged_ops_only() -> None:
    rows = sample.device().ops
    drawn = charts.strip(rows, {}, "x")
    assert drawn is not None
    judged = [row for row in rows if row.fraction_of_peak is not None]
    assert drawn.count("<rect") == 2 * len(judged)
    assert charts.strip([row for row in rows if row.fraction_of_peak is None], {}, "x") is None


def test_heat_marks_the_layer_that_stands_out() -> None:
    found = charts.heat(sample.device().layers, judged=True, ident="x")
    assert found is not None
    assert found[1] == (31,)
    flat = tuple(LayerHeat(k, "moe", 100.0, 0.0) for k in range(4))
    found = charts.heat(flat, judged=True, ident="x")
    assert found is not None
    assert found[1] == ()
    assert charts.heat((), judged=True, ident="x") is None


def test_layers_are_compared_within_their_kind() -> None:
    mixed = tuple(
        LayerHeat(k, "full" if k % 4 else "window", 100.0 + 300 * (k % 4 > 0), 0.0) for k in range(16)
    )
    found = charts.heat(mixed, judged=True, ident="x")
    assert found is not None
    assert found[1] == ()


def test_columns_without_a_word_are_left_out() -> None:
    device = sample.device(missing=(MissingRow("a", 1, 5.0), MissingRow("b", 2, 6.0)))
    table = sections.missing(device.missing, "x", judged=True)
    assert table is not None
    assert [column.name for column in table.columns] == ["Op", "Expected per step", "Floor"]
    assert all(len(row) == 3 for row in table.rows)


def test_timeline_columns_match_the_bars() -> None:
    shown = sample.device().timeline
    assert shown is not None
    drawn = timeline.draw(shown, {"moe_down": 1}, 10_000, "x", modeled=True)
    assert drawn.data["start"] == [bar.start_ns for bar in shown.bars]
    assert sum(drawn.data["duration"]) == sum(bar.duration_ns for bar in shown.bars)
    assert drawn.drawing.count("M") >= len(shown.bars)
    assert ("r1", "moe_down") in drawn.legend
    assert "3 activities too short to draw are merged into 1 bar." in drawn.note


def test_timeline_keeps_the_longest_bars() -> None:
    bars = tuple(TimelineBar(k * 10, 1 + k % 7, "s", "k", None, "kernel") for k in range(500))
    drawn = timeline.draw(Timeline(0, 5_000, bars), {}, 100, "x", modeled=False)
    assert len(drawn.data["start"]) == 100
    assert min(drawn.data["duration"]) >= 6
    assert "Showing the 100 longest of 500 bars." in drawn.note


def test_every_lane_is_bounded() -> None:
    bars = tuple(TimelineBar(k, 1, f"stream {k}", "k", None, "kernel") for k in range(100))
    drawn = timeline.draw(Timeline(0, 100, bars), {}, 1_000, "x", modeled=False)
    assert len(drawn.data["lanes"]) < timeline.MOST_LANES


def test_run_line_never_hides_what_is_assumed() -> None:
    evaluation = sample.evaluation()
    workload = {key: {"value": 1, "source": "assumed"} for key in evaluation.workload}
    shown = " ".join(
        p.text for p in facts.run_line(dataclasses.replace(evaluation, workload=workload)) if p.assumed
    )
    for name in ("batch", "context", "tokens", "TP", "EP", "DP"):
        assert name in shown


def test_hardware_table_gives_every_source() -> None:
    table = sources.hardware(
        sample.evaluation(
            hardware={
                "name": "X", "source": "catalogue",
                "peak_flop_per_s": {"bf16": 1e12}, "links": {"c2c": 450e9},
                "peak_sources": {"bf16": "flag"},
                "sources": {"peak.bf16": "from the user", "other": "a sentence"},
            }
        )
    )  # fmt: skip
    words = "\n".join(" | ".join(cell.text for cell in row) for row in table.rows)
    assert "bf16 peak, dense | 1 TFLOPS | flag: from the user" in words
    assert "c2c, one direction | 450 GB/s" in words
    assert "other |  | a sentence" in words


def test_tables_say_what_they_left_out() -> None:
    device = sample.many_kernels(50).devices[0]
    table = kernels.kernels(device, "x", 20, modeled=True)
    assert table is not None
    assert len(table.rows) == 20
    assert "20 of 50 kernels" in table.left_out
    assert [row[0].sort for row in table.rows] == [None] * 20


def test_classes_add_up() -> None:
    device = sample.device()
    table = kernels.classes(device, "x")
    assert table is not None
    assert sum(row[1].sort or 0 for row in table.rows) == sum(use.total_ns for use in device.kernels)


def test_measured_bar_is_shorter_than_what_overlaps() -> None:
    parts = (WaterfallPart("unmodeled", "", 150), WaterfallPart("overlap", "", -50))
    device = sample.device(waterfall=parts, window_total_ns=100)
    shown = view.page(dataclasses.replace(sample.no_model(), devices=(device,)), view.Limits()).devices[0]
    assert [row.width for row in shown.waterfall] == ["100.00%", "33.33%"]
    assert [row.left for row in shown.waterfall] == ["0.00%", "66.67%"]
    assert shown.waterfall_total[2] == "66.67%"
