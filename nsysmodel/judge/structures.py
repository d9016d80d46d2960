"""Layers of each sort in a model; those of the bundled models from a file, as building a hundred takes long.

`make structures` (`python -m nsysmodel.judge.structures`) writes the file after a change to the bundled
models; a test holds it against them. A model that the file lacks is built.
"""

from __future__ import annotations

import functools
import json
from dataclasses import astuple, dataclass
from importlib import resources
from pathlib import Path

from nsysmodel.model import FlatSpec, LayeredSpec, bundled, load

FILE = "structures.json"


@dataclass(frozen=True, slots=True)
class Structure:
    """Layers of one step by what runs in them."""

    attention: int
    recurrent: int
    expert: int

    @property
    def sentence(self) -> str:
        """The structure in words."""
        parts = [f"{self.attention} attention {'layer' if self.attention == 1 else 'layers'}"]
        if self.recurrent:
            parts.append(f"{self.recurrent} recurrent")
        if self.expert:
            parts.append(f"{self.expert} with experts")
        return ", ".join(parts)


def structure_of(spec: LayeredSpec) -> Structure:
    """The structure of a model."""
    ids = {kind: {op.id for op in ops} for kind, ops in spec.kinds.items()}
    return Structure(
        attention=sum("attention" in ids[kind] for kind in spec.layers),
        recurrent=sum("ssm" in ids[kind] for kind in spec.layers),
        expert=sum("router" in ids[kind] for kind in spec.layers),
    )


def structure_of_bundled(name: str) -> Structure | None:
    """The structure of a bundled model; None for one that lists kernels instead of layers."""
    known = _known()
    if name in known:
        counts = known[name]
        return None if counts is None else Structure(*counts)
    return _built(name)


@functools.cache
def _known() -> dict[str, list[int] | None]:
    found: dict[str, list[int] | None] = json.loads(
        resources.files("nsysmodel.judge").joinpath(FILE).read_text("utf-8")
    )
    return found


def _built(name: str) -> Structure | None:
    spec = load(name)
    return None if isinstance(spec, FlatSpec) else structure_of(spec)


def file_text() -> str:
    """What the file must hold: attention, recurrent and expert layers of each bundled model."""
    built = {name: _built(name) for name in bundled()}
    lines = [f"{json.dumps(name)}: {json.dumps(s and astuple(s))}" for name, s in built.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    Path(__file__).with_name(FILE).write_text(file_text(), "utf-8")
