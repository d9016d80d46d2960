"""Reading YAML and JSON that nobody vouches for, with the line of every field.

Refused: files beyond the size limit, aliases (a few bytes can stand for gigabytes), duplicate keys, tags.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from nsysmodel.errors import ModelError

MAX_YAML_BYTES = 2_000_000
MAX_JSON_BYTES = 16_000_000
MAX_LEVELS = 30

Path_ = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """Plain data with the line of each field.

    Attributes:
        name: what errors call the file.
        data: mappings, lists, numbers, texts.
        lines: line of a field by its path.
        folder: where relative paths start; None for bundled files.
    """

    name: str
    data: Any
    lines: dict[Path_, int] = field(default_factory=dict)
    folder: Path | None = None

    def where(self, path: Path_) -> str:
        """`file:line` of a field, or of the nearest one around it."""
        steps = tuple(path)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        line = self.lines.get(steps)
        return f"{self.name}:{line}" if line else self.name

    def error(self, path: Path_, problem: str, hint: str = "") -> ModelError:
        """An error that names file, line and field."""
        text = ".".join(str(step) for step in path)
        return ModelError(f"{self.where(path)}: {text or 'the file'}: {problem}", hint)


class _Loader(Protocol):
    def check_node(self) -> bool: ...
    def get_single_node(self) -> yaml.Node | None: ...
    def construct_object(self, node: yaml.Node) -> Any: ...


def read(path: Path) -> Document:
    """Reads a YAML or JSON file, by its name.

    Raises:
        ModelError: the file cannot be read or is not of the allowed form.
    """
    name = str(path)
    json_file = path.suffix.lower() == ".json"
    limit = MAX_JSON_BYTES if json_file else MAX_YAML_BYTES
    if path.is_dir():
        raise ModelError(f"{name} is a folder, not a model file.", "Name a .yaml file or a config.json.")
    try:
        with path.open("rb") as stream:
            raw = stream.read(limit + 1)
    except FileNotFoundError:
        raise ModelError(f"There is no file {name}.", "Check the path.") from None
    except OSError as error:
        raise ModelError(f"{name} cannot be read: {error.strerror}.") from None
    if len(raw) > limit:
        raise ModelError(f"{name} is larger than {limit / 1e6:g} MB, which no model file is.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ModelError(f"{name} is not text.", "A model file is YAML, a configuration is JSON.") from None
    return parse_json(text, name, path.parent) if json_file else parse_yaml(text, name, path.parent)


def parse_json(text: str, name: str, folder: Path | None = None) -> Document:
    """Plain data of a JSON text; lines are not kept."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ModelError(f"{name}: the key {twice!r} is given twice.", "Keep one of them.")
        return result

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ModelError(f"{name}:{error.lineno}: this is not JSON: {error.msg}.") from None
    except RecursionError:
        raise ModelError(f"{name} is nested too deeply.") from None
    return Document(name, data, {}, folder)


def parse_yaml(text: str, name: str, folder: Path | None = None) -> Document:
    """Plain data of a YAML text with the line of each field."""
    loader_class = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        # Without a star there is no alias, and no need to look for one.
        if "*" in text and any(
            isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, loader_class)
        ):
            raise ModelError(f"{name}: YAML aliases (*name) are not allowed.", "Write the values out.")
        loader: Any = loader_class(text)
        try:
            node = loader.get_single_node()
            lines: dict[Path_, int] = {}
            data = _plain(node, (), lines, loader, name) if node is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}:{mark.line + 1}" if mark else name
        raise ModelError(f"{place}: this is not YAML: {error.problem}.") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ModelError(f"{name}: this is not YAML: {str(error).splitlines()[0][:200]}.") from None
    return Document(name, data, lines, folder)


def _plain(node: yaml.Node, path: Path_, lines: dict[Path_, int], loader: _Loader, name: str) -> Any:
    """Data of a node; records lines, refuses duplicate keys, tags and deep nesting."""
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if len(path) > MAX_LEVELS:
        raise ModelError(f"{name}:{line}: nested deeper than {MAX_LEVELS} levels.")
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), lines, loader, name) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = _scalar(key_node, loader, name)
            if key in result:
                at = f"{name}:{key_node.start_mark.line + 1}"
                raise ModelError(f"{at}: the key {key!r} is given twice.", "Keep one of them.")
            lines[(*path, key)] = key_node.start_mark.line + 1
            result[key] = _plain(value_node, (*path, key), lines, loader, name)
        return result
    return _scalar(node, loader, name)


def _scalar(node: yaml.Node, loader: _Loader, name: str) -> Any:
    """A text, number, boolean or nothing; dates stay text."""
    line = node.start_mark.line + 1
    if not isinstance(node, yaml.ScalarNode):
        raise ModelError(f"{name}:{line}: a key must be a plain word.")
    if node.tag.endswith(":timestamp"):
        return node.value
    if not node.tag.startswith("tag:yaml.org,2002:") or node.tag.endswith((":binary", ":merge")):
        raise ModelError(f"{name}:{line}: the tag {node.tag!r} is not allowed.", "Write the value itself.")
    try:
        return loader.construct_object(node)
    except ValueError:
        raise ModelError(f"{name}:{line}: {node.value[:60]!r} is not a value.") from None
