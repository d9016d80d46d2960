"""Every cause of a gap, planted with a known length and found."""

from __future__ import annotations

import pytest
from account_cases import MAIN, WORKER, Case

from nsysmodel.account.gaps import GapAccount
from nsysmodel.result import GAP_CAUSES

US = 1_000


def by_cause(found: GapAccount) -> dict[str, int]:
    return {cause: time for cause, time in found.gaps.by_cause.items() if time}


def test_all_causes_and_sizes_are_always_there() -> None:
    case = Case()
    case.kernel(0, 100, (-10, -5))
    gaps = case.gaps((0, 100)).gaps
    assert dict(gaps.by_cause) == dict.fromkeys(GAP_CAUSES, 0)
    assert list(gaps.by_size) == ["<1us", "1-5us", "5-50us", "50-500us", ">500us"]
    assert gaps.places == ()


def test_launch_that_starts_after_the_device_ran_dry() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(50 * US, 60 * US, (44 * US, 48 * US))
    assert by_cause(case.gaps((0, 60 * US))) == {"launch_starved": 40 * US}


def test_launch_that_ends_after_the_device_ran_dry() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(50 * US, 60 * US, (5 * US, 49 * US))
    assert by_cause(case.gaps((0, 60 * US))) == {"launch_starved": 40 * US}


def test_launch_just_missed_is_starved_and_not_a_dependency() -> None:
    """A host-bound run: each call ends just before the device runs dry, and takes effect 6 us later."""
    case = Case()
    for step in range(10):
        launch = step * 6 * US
        case.kernel(launch + 7 * US, launch + 9 * US, (launch, launch + 3 * US))
    # Two surely late launches teach how long a launch takes to have an effect.
    case.kernel(107 * US, 108 * US, (100 * US, 103 * US))
    case.kernel(207 * US, 208 * US, (200 * US, 203 * US))
    gaps = case.gaps((7 * US, 208 * US))
    assert set(by_cause(gaps)) == {"launch_starved"}


def test_wait_between_a_late_launch_and_its_start_is_a_dependency() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(50 * US, 60 * US, (44 * US, 48 * US))
    case.kernel(560 * US, 570 * US, (88 * US, 90 * US), stream=9)
    gaps = case.gaps((0, 570 * US))
    # The first late launch took effect 2 us after its call, so the other should have at 92 us.
    assert by_cause(gaps) == {"launch_starved": 40 * US + 32 * US, "dependency": 468 * US}


def test_dependency_is_what_was_launched_in_time() -> None:
    case = Case()
    case.kernel(0, 100 * US, (-8 * US, -4 * US))
    case.kernel(170 * US, 180 * US, (-4 * US, -1 * US), stream=8)
    gaps = case.gaps((0, 180 * US))
    assert by_cause(gaps) == {"dependency": 70 * US}
    assert "another stream" in gaps.gaps.places[0].explanation


def test_host_in_a_synchronise_call() -> None:
    """The launch right after the wait is what it takes to resume: the whole gap is the wait's."""
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.sync(2 * US, 200 * US)
    case.kernel(210 * US, 220 * US, (203 * US, 208 * US))
    gaps = case.gaps((0, 220 * US))
    assert by_cause(gaps) == {"sync": 200 * US}
    assert "cudaStreamSynchronize" in gaps.gaps.places[0].explanation


def test_wait_that_returns_at_once_does_not_excuse_slow_launching() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.sync(2 * US, 13 * US)
    case.kernel(60 * US, 70 * US, (52 * US, 58 * US))
    assert by_cause(case.gaps((0, 70 * US))) == {"launch_starved": 50 * US}


def test_gap_splits_into_wait_and_launch() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US), op=0)
    case.sync(2 * US, 22 * US)
    case.kernel(48 * US, 70 * US, (40 * US, 46 * US))
    case.kernel(70 * US, 71 * US, (41 * US, 43 * US))
    gaps = case.gaps((0, 48 * US), ops=("lm_head",))
    assert by_cause(gaps) == {"sync": 12 * US, "launch_starved": 26 * US}
    pieces = gaps.frame
    assert pieces["start_ns"].tolist() == [10 * US, 22 * US]
    assert pieces["end_ns"].tolist() == [22 * US, 48 * US]
    assert pieces["cause"].tolist() == ["sync", "launch_starved"]
    (place,) = gaps.gaps.places
    assert (place.after, place.before, place.count, place.total_ns) == ("lm_head", "next step", 1, 38 * US)
    assert place.explanation.startswith("host in cudaStreamSynchronize for 12 µs, then 26 µs of launch")


def test_wait_of_another_thread_is_no_excuse() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.sync(2 * US, 45 * US, thread=WORKER)
    case.kernel(50 * US, 60 * US, (46 * US, 48 * US))
    assert by_cause(case.gaps((0, 60 * US))) == {"launch_starved": 40 * US}


def test_stream_that_waits_for_an_event_is_not_a_host_wait() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.syncs.append({"start_ns": 0, "end_ns": 45 * US, "kind": "stream_wait", "correlation_id": 1})
    case.kernel(50 * US, 60 * US, (46 * US, 48 * US))
    assert by_cause(case.gaps((0, 60 * US))) == {"launch_starved": 40 * US}


def test_blocking_copy_that_waits_for_the_stream() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.copy(40 * US, 50 * US, (-2 * US, 52 * US), name="cudaMemcpy")
    assert by_cause(case.gaps((0, 50 * US))) == {"sync": 30 * US}


@pytest.mark.parametrize("thread", [MAIN, 0])
def test_profiler_overhead_on_the_launching_thread(thread: int) -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.overhead(5 * US, 100 * US, thread)
    case.kernel(110 * US, 120 * US, (103 * US, 107 * US))
    assert by_cause(case.gaps((0, 120 * US))) == {"profiler": 100 * US}


def test_long_flush_of_the_profilers_own_thread_explains_no_small_gap() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(40 * US, 50 * US, (33 * US, 37 * US))
    case.kernel(750 * US, 760 * US, (-4 * US, -2 * US))
    case.overhead(-900 * US, 45 * US, WORKER)
    case.overhead(50 * US, 740 * US, WORKER)
    assert by_cause(case.gaps((0, 760 * US))) == {"launch_starved": 30 * US, "profiler": 690 * US + 10 * US}


def test_inside_a_graph_with_one_launch_for_all_kernels() -> None:
    case = Case()
    launch = case.call(-20 * US, 5 * US, "cudaGraphLaunch")
    for node in range(6):
        start = node * 12 * US
        case.kernel(start, start + 10 * US, correlation=launch, stream=7 + node % 2)
    assert by_cause(case.gaps((0, 70 * US))) == {"inside_graph": 10 * US}


def test_between_two_graph_launches() -> None:
    case = Case()
    for step in range(2):
        launch = case.call(step * 100 * US - 20 * US, step * 100 * US - 5 * US, "cudaGraphLaunch")
        for node in range(4):
            start = step * 100 * US + node * 10 * US
            case.kernel(start, start + 10 * US, correlation=launch)
    gaps = case.gaps((0, 100 * US), (100 * US, 140 * US))
    assert by_cause(gaps) == {"launch_starved": 60 * US}
    assert gaps.by_window[0].sum() == 60 * US
    assert gaps.by_window[1].sum() == 0


def test_no_launch_record() -> None:
    case = Case()
    case.kernel(0, 10 * US)
    case.kernel(30 * US, 40 * US)
    gaps = case.gaps((0, 40 * US))
    assert by_cause(gaps) == {"unknown": 20 * US}


def test_window_beyond_all_activity() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    gaps = case.gaps((-5 * US, 30 * US))
    assert by_cause(gaps) == {"launch_starved": 5 * US, "unknown": 20 * US}
    assert {place.before for place in gaps.gaps.places} == {"kernel", "end of the export"}


def test_gap_across_the_edge_of_a_window_counts_on_each_side() -> None:
    case = Case()
    case.kernel(0, 10 * US, (-8 * US, -4 * US))
    case.kernel(50 * US, 60 * US, (44 * US, 48 * US))
    gaps = case.gaps((0, 25 * US), (25 * US, 60 * US))
    assert gaps.by_window.sum(axis=1).tolist() == [15 * US, 25 * US]
    assert gaps.gaps.by_size["5-50us"].count == 2


def test_size_classes() -> None:
    case = Case()
    time = 0
    for gap in (999, 1_000, 4_999, 5_000, 50_000, 499_999, 500_000, 0):
        case.kernel(time, time + 100, (-50, -20))
        time += 100 + gap
    sizes = case.gaps((0, time)).gaps.by_size
    assert [sizes[size].count for size in sizes] == [1, 2, 1, 2, 1]
    assert sum(bucket.total_ns for bucket in sizes.values()) == time - 800


def test_overlap_on_one_stream_is_no_gap() -> None:
    case = Case()
    case.kernel(0, 100, (-50, -20))
    case.kernel(60, 160, (-40, -10))
    assert by_cause(case.gaps((0, 160))) == {}
