"""The JSON Schema of `nsysmodel.report/1`, derived from the result types, so that it cannot drift.

`python -m nsysmodel.report.schema > nsysmodel/report/schema.json` writes the published file.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, Union

from nsysmodel import result

Schema = dict[str, Any]

_SOURCES = ["flag", "export", "inferred", "catalogue", "model", "assumed"]


def build_schema() -> Schema:
    """The schema, draft 2020-12. Every field is required; more are allowed, since they may be added."""
    definitions: dict[str, Schema] = {}
    top = _object(result.Evaluation, definitions)
    properties = top["properties"]
    for name in ("version", "command"):
        del properties[name]
    properties["workload"] = {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"value": {}, "source": {"enum": _SOURCES}},
            "required": ["value", "source"],
        },
    }
    head: Schema = {
        "schema": {"const": result.SCHEMA},
        "tool": {
            "type": "object",
            "properties": {"version": {"type": "string"}, "command": {"type": "string"}},
            "required": ["version"],
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "nsysmodel.report/1",
        "title": "Result of an evaluation",
        "description": "Times in ns, sizes in bytes, work in FLOP, rates per s. Fields are only ever added.",
        "type": "object",
        "properties": head | properties,
        "required": list(head | properties),
        "$defs": dict(sorted(definitions.items())),
    }


def _object(kind: type, definitions: dict[str, Schema]) -> Schema:
    hints = typing.get_type_hints(kind)
    names = [item.name for item in dataclasses.fields(kind)]
    described = inspect.cleandoc(kind.__doc__ or "")
    return {
        "type": "object",
        "description": " ".join(described.split()),
        "properties": {name: _schema(hints[name], definitions) for name in names},
        "required": names,
    }


def _schema(hint: Any, definitions: dict[str, Schema]) -> Schema:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in definitions:
            definitions[hint.__name__] = {}
            definitions[hint.__name__] = _object(hint, definitions)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(argument, definitions) for argument in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if origin is Mapping:
        inner = _schema(arguments[1], definitions)
        return {"type": "object"} | ({"additionalProperties": inner} if inner else {})
    names = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
    return {"type": names[hint]} if hint in names else {}


def text() -> str:
    """The published file."""
    return json.dumps(build_schema(), indent=1) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(text())
