"""From a result to checks: one per limit, passed, failed or not to be judged."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from nsysmodel import units
from nsysmodel.comparison.deciding import short
from nsysmodel.comparison.result import Comparison, OpChange
from nsysmodel.errors import NsysModelError
from nsysmodel.gate.budget import ANY, Budget, BudgetError, Limits
from nsysmodel.result import DeviceResult, Evaluation, OpRow

Outcome = Literal["passed", "failed", "cannot_judge"]


@dataclass(frozen=True, slots=True)
class Check:
    """One limit and what became of it.

    Attributes:
        name: the limit, as `step.max_ns` or `ops.moe_down.max_ratio`.
        outcome: what became of it.
        message: one line for people.
        file, line: where the limit stands; empty where it stands in no file.
    """

    name: str
    outcome: Outcome
    message: str
    file: str = ""
    line: int | None = None


def exit_code(checks: Sequence[Check]) -> int:
    """0 all passed, 3 at least one failed, 4 none failed and at least one cannot be judged.

    >>> exit_code([Check("a", "passed", ""), Check("b", "cannot_judge", "")])
    4
    """
    outcomes = {check.outcome for check in checks}
    if "failed" in outcomes:
        return 3
    return 4 if "cannot_judge" in outcomes or not checks else 0


def check_budget(evaluation: Evaluation, budget: Budget) -> tuple[Check, ...]:
    """Every limit of a budget, for every device.

    Raises:
        BudgetError: the budget names an op that the model does not have.
    """
    judged = evaluation.model is not None and evaluation.verdict.status == "ok"
    if judged:
        _known_ops(evaluation, budget)
    checks: list[Check] = []
    for device in evaluation.devices:
        place = f"device {device.device}: " if len(evaluation.devices) > 1 else ""
        checks += (_placed(check, budget, place) for check in _device(device, evaluation, budget, judged))
    return tuple(checks)


def _placed(check: Check, budget: Budget, place: str) -> Check:
    line = budget.lines.get(check.name)
    return Check(check.name, check.outcome, place + check.message, budget.name, line)


def _known_ops(evaluation: Evaluation, budget: Budget) -> None:
    """Mistyped op ids are an error: a limit that never applies protects nothing."""
    known = {row.op for device in evaluation.devices for row in device.ops}
    known |= {row.op for device in evaluation.devices for row in device.missing}
    known |= {part for label in known for part in label.split("+")}
    known |= {str(entry.get("op")) for device in evaluation.devices for entry in device.coverage.closure}
    for name in budget.ops:
        if name != ANY and name not in known:
            close = difflib.get_close_matches(name, sorted(known), n=1)
            told = f" Did you mean {close[0]}?" if close else f" It has {', '.join(sorted(known))}."
            line = budget.lines.get(f"ops.{name}")
            where = f"{budget.name}:{line}" if line else budget.name
            raise BudgetError(f"{where}: ops.{name}: the model has no such op.{told}")


def _device(device: DeviceResult, evaluation: Evaluation, budget: Budget, judged: bool) -> Iterator[Check]:
    yield from _step(device, evaluation, budget.step, judged)
    window = device.window_total_ns
    if budget.max_gap_share is not None:
        idle = sum(device.gaps.by_cause.values())
        yield _at_most("max_gap_share", "idle time", idle / window if window else None, budget.max_gap_share)
    covered = device.coverage.kernel_time_modeled if judged else None
    if budget.min_coverage is not None:
        name, limit = "min_coverage", units.percent(budget.min_coverage)
        if covered is None:
            yield _unjudged(name, evaluation)
        else:
            good = covered >= budget.min_coverage
            text = f"the model claims {units.percent(covered)} of the kernel time, at least {limit} asked"
            yield Check(name, "passed" if good else "failed", f"{text}.")
    if budget.max_unmodeled_share is not None:
        if covered is None:
            yield _unjudged("max_unmodeled_share", evaluation)
        else:
            yield _at_most(
                "max_unmodeled_share", "unmodeled kernel time", 1 - covered, budget.max_unmodeled_share
            )
    if not judged:
        yield from (_unjudged(f"ops.{name}", evaluation) for name in budget.ops)
        return
    rows = {row.op: row for row in device.ops}
    for name, limits in budget.ops.items():
        if name != ANY:
            yield from _op(name, limits, rows, device)
    if ANY in budget.ops:
        others = [row for name, row in rows.items() if name not in budget.ops]
        yield from _any(budget.ops[ANY], others)


def _unjudged(name: str, evaluation: Evaluation) -> Check:
    told = "no model was given (-m)" if evaluation.model is None else evaluation.verdict.headline
    return Check(name, "cannot_judge", f"{told.rstrip('.')}.")


def _at_most(name: str, what: str, value: float | None, limit: float) -> Check:
    if value is None:
        return Check(name, "cannot_judge", f"the share of {what} is unknown.")
    text = f"{what} is {units.percent(value)}, at most {units.percent(limit)} allowed."
    return Check(name, "passed" if value <= limit else "failed", text)


def _step(device: DeviceResult, evaluation: Evaluation, limits: Limits, judged: bool) -> Iterator[Check]:
    step = device.step
    if limits.max_ns is not None:
        if not device.steps.used:
            yield Check("step.max_ns", "cannot_judge", "no steps were found in the export.")
        else:
            text = f"a step takes {units.ns(step.measured_ns)}, at most {units.ns(limits.max_ns)} allowed."
            yield Check("step.max_ns", "passed" if step.measured_ns <= limits.max_ns else "failed", text)
    if limits.max_ratio is not None:
        if not judged or not step.floor_ns:
            yield _unjudged("step.max_ratio", evaluation)
        else:
            ratio, most = step.measured_ns / step.floor_ns, units.ratio(limits.max_ratio)
            text = f"a step takes {units.ratio(ratio)} its floor, at most {most} allowed."
            yield Check("step.max_ratio", "passed" if ratio <= limits.max_ratio else "failed", text)


def _op(name: str, limits: Limits, rows: dict[str, OpRow], device: DeviceResult) -> Iterator[Check]:
    """Limits of one op; an op that is fused or missing cannot be judged on its own."""
    row = rows.get(name)
    if row is None:
        fused = next((label for label in rows if name in label.split("+")), "")
        found = any(one.op == name for one in device.missing)
        why = (
            f"runs inside {fused}: put the limit there"
            if fused
            else "is served by no kernel" if found else "does not run on this device"
        )  # fmt: skip
        yield Check(f"ops.{name}", "cannot_judge", f"{name} {why}.")
        return
    yield from _limits(f"ops.{name}", row, limits, named=True)


def _any(limits: Limits, rows: Sequence[OpRow]) -> Iterator[Check]:
    """The limits of `*`: one failed check per op that breaks them, else one that passed."""
    broken = [
        check for row in rows for check in _limits(f"ops.{ANY}", row, limits, named=False)
        if check.outcome == "failed"
    ]  # fmt: skip
    yield from broken or [Check(f"ops.{ANY}", "passed", f"{len(rows)} other ops keep their limits.")]


def _limits(name: str, row: OpRow, limits: Limits, *, named: bool) -> Iterator[Check]:
    if limits.max_ns is not None:
        text = (
            f"{row.op} takes {units.ns(row.measured_ns)} a step, at most {units.ns(limits.max_ns)} allowed."
        )
        yield Check(f"{name}.max_ns", "passed" if row.measured_ns <= limits.max_ns else "failed", text)
    if limits.max_ratio is None:
        return
    if row.ratio is None:
        why = "is bound by launches" if row.bound == "latency" else "has no ratio that may be judged"
        yield Check(f"{name}.max_ratio", "cannot_judge" if named else "passed", f"{row.op} {why}.")
        return
    text = (
        f"{row.op} takes {units.ratio(row.ratio)} its floor, at most {units.ratio(limits.max_ratio)} allowed."
    )
    yield Check(f"{name}.max_ratio", "passed" if row.ratio <= limits.max_ratio else "failed", text)


def check_comparison(comparison: Comparison) -> tuple[Check, ...]:
    """The step and every row that got slower against the baseline; one check that passed where none did."""
    verdict = comparison.verdict
    if verdict.status == "not_comparable":
        return (Check("baseline", "cannot_judge", verdict.headline),)
    checks = []
    for pair in comparison.pairs:
        m = pair.step
        if m.change == "regressed":
            text = f"a {pair.unit} took {units.ns(m.a_ns)}, now {units.ns(m.b_ns)}"
            checks.append(
                Check("baseline.step", "failed", f"{text} (+{_percent(m.change_ratio)}; {m.reason}).")
            )
    checks += [_slower(op) for op in comparison.ops if op.change == "regressed"]
    return tuple(checks) or (Check("baseline", "passed", verdict.headline),)


def _percent(ratio: float | None) -> str:
    return units.percent(ratio, 2)


def _slower(op: OpChange) -> Check:
    m = op.measure
    text = f"{short(op.op)} took {units.ns(m.a_ns)} a step, now {units.ns(m.b_ns)}"
    return Check(
        f"baseline.ops.{short(op.op)}", "failed", f"{text} (+{_percent(m.change_ratio)}; {m.reason})."
    )


__all__ = ["Check", "NsysModelError", "check_budget", "check_comparison", "exit_code"]
