"""Data files of this package."""

from __future__ import annotations

from importlib import resources
from typing import Any


def bundled_yaml(package: str, *path: str) -> Any:
    """Plain data of a YAML file beside the modules of a package.

    >>> sorted(bundled_yaml("nsysmodel.join", "data", "steps.yaml"))
    ['markers', 'phases', 'token_grids']
    """
    import yaml

    text = resources.files(package).joinpath(*path).read_text("utf-8")
    # libyaml parses ten times as fast; a wheel of PyYAML has it, a build of one's own may not.
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
