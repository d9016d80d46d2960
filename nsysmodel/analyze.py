"""The pipeline on one page: read, join, account, judge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nsysmodel.errors import ExportError
from nsysmodel.progress import tell
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.result import Diagnostic, Evaluation, ExportFacts
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.run import Run
    from nsysmodel.join.types import Join
    from nsysmodel.judge.cases import Case
    from nsysmodel.judge.judged import Judged
    from nsysmodel.model import ModelSpec
    from nsysmodel.result_what_if import WhatIf


AUTO = "auto"
"""In place of a model: the one bundled model whose structure fits the export."""


def evaluate(
    export: str | os.PathLike[str] | Run | list[str] | tuple[str, ...],
    model: str | ModelSpec | None = None,
    *,
    workload: WorkloadRequest | None = None,
    hardware: HardwareRequest | None = None,
    selection: Selection | None = None,
    command: str = "",
) -> Evaluation:
    """Judge an export against a model.

    Args:
        export: path of an export, or an opened run; a list of paths for the ranks of one run.
        model: bundled name, path of a model file or `config.json`, or a loaded model; `auto` for the one
            bundled model that fits; None to show what needs no model.
        workload: what is known of the workload; the rest is read from the export, inferred, or assumed.
        hardware: the GPU that the floors are for, where it is not the export's own.
        selection: which part of the export is judged.
        command: the command line, for the report's own account of how it was made.

    Raises:
        ExportError: the export cannot be read or has nothing to show.
        ModelError: the model does not exist or is wrong.
        HardwareError: a flag names a GPU or a peak that is not known.
    """
    if isinstance(export, (list, tuple)):
        return evaluate_ranks(
            export, model, workload=workload, hardware=hardware, selection=selection, command=command
        )[0]
    return evaluate_cases(
        export, model, workload=workload, hardware=hardware, selection=selection, command=command
    )[0]


def evaluate_ranks(
    exports: Sequence[str | os.PathLike[str]],
    model: str | ModelSpec | None = None,
    *,
    workload: WorkloadRequest | None = None,
    hardware: HardwareRequest | None = None,
    selection: Selection | None = None,
    command: str = "",
) -> tuple[Evaluation, Sequence[tuple[Case, Judged]]]:
    """Judge the exports of several ranks of one run together; the first gives the verdict.

    The time of each collective is split into transfer (the shortest over the ranks) and waiting for peers.
    Arguments as `evaluate`, for every export; the second value as `evaluate_cases` gives it.

    Raises:
        ExportError, ModelError, HardwareError: as `evaluate`; also where one export is given twice.
    """
    paths = [os.path.realpath(path) for path in exports]
    if len(set(paths)) < len(paths):
        raise ExportError("An export is given twice.", "Give one export for each rank.")
    found = [
        evaluate_cases(
            export, model, workload=workload, hardware=hardware, selection=selection, command=command
        )
        for export in exports
    ]
    main = found[0][0]
    if len(found) == 1:
        return found[0]
    pairs = [pair for _, cases in found for pair in cases]
    judged, reason = _peers(pairs, given=True)
    indices = [index for index, (_, cases) in enumerate(found) for _ in cases]
    notes = [Diagnostic("ranks_not_compared", "warning", reason)] if reason else []
    whole = replace(
        main,
        devices=tuple(
            replace(one.result, export_index=index) for index, one in zip(indices, judged, strict=True)
        ),
        exports=tuple(evaluation.export for evaluation, _ in found),
        diagnostics=(*(note for evaluation, _ in found for note in evaluation.diagnostics), *notes),
    )
    return whole, list(zip((case for case, _ in pairs), judged, strict=True))


def _peers(pairs: Sequence[tuple[Case, Judged]], *, given: bool) -> tuple[list[Judged], str]:
    """Collectives of several ranks against each other; see `nsysmodel.judge.ranks`."""
    if len(pairs) < 2:
        return [judged for _, judged in pairs], ""
    from nsysmodel.join.vocabulary import load as load_vocabulary
    from nsysmodel.judge.ranks import compare_ranks

    return compare_ranks(pairs, load_vocabulary(), given=given)


def evaluate_cases(
    export: str | os.PathLike[str] | Run,
    model: str | ModelSpec | None = None,
    *,
    workload: WorkloadRequest | None = None,
    hardware: HardwareRequest | None = None,
    selection: Selection | None = None,
    command: str = "",
) -> tuple[Evaluation, Sequence[tuple[Case, Judged]]]:
    """As `evaluate`, with the rows of each process and device and how they were joined.

    `instance_rows` and `tracks` make frames of the second value, without reading the export again.
    """
    from nsysmodel.export.run import Run, open_run
    from nsysmodel.join.vocabulary import load as load_vocabulary
    from nsysmodel.judge.judged import hardware_of, judge_case

    spec = None if model == AUTO else spec_of(model)
    run = export if isinstance(export, Run) else open_run(export)
    try:
        vocabulary = load_vocabulary()
        cases = cases_of(run, selection or Selection())
        tell("judging")
        if model == AUTO:
            from nsysmodel.judge.structure import choose

            spec = choose(
                cases[0], vocabulary, hardware_of(cases[0], hardware or HardwareRequest(), needed=False)
            )
        judged = [
            judge_case(
                run,
                case,
                spec,
                vocabulary,
                workload or WorkloadRequest(),
                hardware or HardwareRequest(),
                selection or Selection(),
            )
            for case in cases
        ]
        judged = _peers(list(zip(cases, judged, strict=True)), given=False)[0]
        facts, found = run.facts, list(run.diagnostics)
    finally:
        if run is not export:
            run.close()
    return _evaluation(facts, found, judged, spec, command), list(zip(cases, judged, strict=True))


def instances(
    export: str | os.PathLike[str] | Run,
    model: str | ModelSpec | None,
    *,
    workload: WorkloadRequest | None = None,
    hardware: HardwareRequest | None = None,
    selection: Selection | None = None,
) -> pd.DataFrame:
    """One row per kernel of the export, with the step, layer, op and confidence that the join gave it.

    Columns: those of `Run.kernels`, and `step`, `layer` (nullable integers), `op` (text, empty where no op
    claims the kernel), `confidence`.

    Raises:
        ExportError, ModelError: as `evaluate`.
        HardwareError: a model is given and nothing is known of a GPU: no kernel could be labelled.
    """
    from nsysmodel.judge.judged import hardware_of

    pairs = evaluate_cases(export, model, workload=workload, hardware=hardware, selection=selection)[1]
    for case, _ in pairs:
        hardware_of(case, hardware or HardwareRequest(), needed=model is not None)
    return instance_rows(pairs)


def instance_rows(pairs: Sequence[tuple[Case, Judged]]) -> pd.DataFrame:
    """The rows that `instances` gives, from what `evaluate_cases` found."""
    import pandas as pd

    frames = [_labelled(case, judged.join) for case, judged in pairs]
    whole = pd.concat(frames, ignore_index=True)
    return whole.sort_values(["start_ns", "end_ns"], kind="stable", ignore_index=True)


def tracks(pairs: Sequence[tuple[Case, Judged]]) -> list[tuple[str, pd.DataFrame]]:
    """Title and track rows (see `judge.tracks`) of each process and device of `evaluate_cases`."""
    from nsysmodel.judge.tracks import tracks_of

    return [
        (
            f"{judged.result.name}, device {case.device} of process {case.process}",
            tracks_of(case, judged.join, judged=judged.verdict.status == "ok"),
        )
        for case, judged in pairs
    ]


def _labelled(case: Case, join: Join) -> pd.DataFrame:
    import numpy as np
    import pandas as pd

    labels = join.labels
    texts = np.array([*labels.op_labels, ""], dtype=object)
    frame = case.kernels.copy()
    frame["step"] = pd.array(labels.step, dtype="Int64")
    frame["layer"] = pd.array(labels.layer, dtype="Int64")
    frame.loc[labels.step < 0, "step"] = pd.NA
    frame.loc[labels.layer < 0, "layer"] = pd.NA
    frame["op"] = texts[labels.op]
    frame["confidence"] = np.where(labels.op >= 0, np.round(labels.confidence(), 4), 0.0)
    return frame


def spec_of(model: str | ModelSpec | None) -> ModelSpec | None:
    """A model by its name or file, or as it is given."""
    if not isinstance(model, (str, os.PathLike)):
        return model
    from nsysmodel.model import load

    return load(os.fspath(model))


def cases_of(run: Run, selection: Selection) -> Sequence[Case]:
    """The cases of an export.

    Raises:
        ExportError: the device did nothing that was recorded.
    """
    from nsysmodel.judge.cases import find_cases

    cases = find_cases(run, selection)
    if not cases:
        error = next((d for d in run.diagnostics if d.severity == "error"), None)
        raise ExportError(
            error.message if error else f"{run.path_name} holds no kernel.",
            error.hint if error else "Trace CUDA: nsys profile --trace=cuda,nvtx --cuda-graph-trace=node …",
        )
    return cases


def _evaluation(
    facts: ExportFacts,
    found: list[Diagnostic],
    judged: Sequence[Judged],
    spec: ModelSpec | None,
    command: str,
) -> Evaluation:
    """The whole result; the first case (most kernel time) gives the verdict."""
    from importlib.metadata import version

    from nsysmodel.judge.plain import hardware_facts, model_facts, workload_facts

    main = judged[0]
    return Evaluation(
        version=version("nsysmodel"),
        export=facts,
        hardware=hardware_facts(main.hardware),
        workload=workload_facts(main.workload, spec),
        model=model_facts(spec if main.model is None else main.model),
        verdict=main.verdict,
        devices=tuple(case.result for case in judged),
        diagnostics=(*found, *(d for case in judged for d in case.diagnostics)),
        fits=main.fits,
        command=command,
        exports=(facts,),
        what_if=_what_if(spec, main),
    )


def _what_if(spec: ModelSpec | None, judged: Judged) -> WhatIf | None:
    """Floors of other workloads, where the step was judged by a layered model."""
    from nsysmodel.judge.what_if import what_if
    from nsysmodel.model import LayeredSpec
    from nsysmodel.model.types import StepModel

    model, workload, hardware = judged.model, judged.workload, judged.hardware
    if judged.verdict.status != "ok" or hardware is None or workload is None:
        return None
    if not isinstance(spec, LayeredSpec) or not isinstance(model, StepModel):
        return None
    return what_if(spec, model, workload, hardware, judged.result.ops)
