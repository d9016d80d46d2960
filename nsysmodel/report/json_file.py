"""The JSON of an evaluation, and the schema that it is published under."""

from __future__ import annotations

import json
from importlib import resources
from typing import cast

from nsysmodel.errors import OutputError
from nsysmodel.result import Evaluation


def render_json(evaluation: Evaluation) -> str:
    """`to_dict` as text: keys in the order of the contract, two spaces, ASCII.

    Raises:
        OutputError: a number is infinite or not a number.
    """
    try:
        return json.dumps(evaluation.to_dict(), indent=2, allow_nan=False) + "\n"
    except ValueError as error:
        raise OutputError(
            "The result holds a number that JSON cannot carry (infinite, or not a number).",
            "This is a fault of nsysmodel; please report it with what 'nsysmodel inspect' says.",
        ) from error


def json_schema() -> dict[str, object]:
    """The JSON Schema (draft 2020-12) of `nsysmodel.report/1`."""
    text = (resources.files("nsysmodel") / "report" / "schema.json").read_text(encoding="utf-8")
    return cast("dict[str, object]", json.loads(text))
