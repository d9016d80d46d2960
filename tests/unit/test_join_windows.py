"""Where steps are cut and which are judged."""

from __future__ import annotations

import itertools

import numpy as np

from nsysmodel.join.types import StepWindow
from nsysmodel.join.windows import boundaries, judge


def _steps(*lengths: int, layers: int = 4) -> list[StepWindow]:
    edges = np.concatenate(([0], np.cumsum(lengths))).tolist()
    return [
        StepWindow(index, low, high, layers) for index, (low, high) in enumerate(itertools.pairwise(edges))
    ]


def _dropped(
    steps: list[StepWindow], kernel_ns: list[int], complete: list[bool] | None = None
) -> list[str | None]:
    whole = complete or [True] * len(steps)
    return [step.dropped for step in judge(steps, np.array(kernel_ns), 4, whole)]


def test_a_slow_first_step_is_a_warm_up() -> None:
    assert _dropped(_steps(120, 100, 100, 100), [115, 100, 100, 100]) == ["warm_up", None, None, None]


def test_a_first_step_like_the_others_is_kept() -> None:
    assert _dropped(_steps(100, 100, 100), [101, 100, 100]) == [None, None, None]


def test_the_last_step_has_no_successor_and_is_left_out_where_enough_remain() -> None:
    assert _dropped(_steps(100, 100, 100, 100, 80), [100] * 5) == [None, None, None, None, "open_end"]


def test_a_complete_last_step_stays_where_few_others_exist() -> None:
    assert _dropped(_steps(100, 100, 100), [100] * 3)[-1] is None


def test_steps_that_lack_layers_or_anchors_are_partial() -> None:
    steps = [*_steps(100, 100, 100), StepWindow(3, 300, 350, 2)]
    assert _dropped(steps, [100, 100, 100, 50])[-1] == "partial"
    assert _dropped(_steps(100, 100, 100), [100] * 3, [True, False, True])[1] == "partial"


def test_an_odd_step_is_an_outlier_and_a_varied_run_has_none() -> None:
    assert _dropped(_steps(100, 101, 180, 100, 99, 100), [100] * 6)[2] == "outlier"
    varied = _dropped(_steps(100, 150, 200, 120, 180, 140), [100] * 6)
    assert "outlier" not in varied


def test_steps_are_cut_at_the_longest_idle_gap() -> None:
    # kernel of step 0, its last copy, idle, copy for step 1, kernel of step 1
    start = np.array([0, 12, 60, 72])
    end = np.array([10, 20, 70, 90])
    assert boundaries(start, end, [0], [3]) == [2]


def test_most_boundaries_decide_for_all() -> None:
    # Three steps of (kernel, copy, copy); the gap lies before the second copy twice, once before the first.
    start = np.array([0, 12, 60, 100, 112, 160, 200, 250, 262, 300])
    end = start + 10
    assert boundaries(start, end, [0, 3, 6], [3, 6, 9]) == [2, 5, 8]


def test_steps_that_overlap_are_cut_at_the_start_of_the_next() -> None:
    start = np.array([0, 10, 12, 30])
    end = np.array([9, 25, 20, 40])
    assert boundaries(start, end, [2], [1]) == [1]
