"""`nsysmodel cache`: what is kept of decoded exports, and how to be rid of it."""

from __future__ import annotations

from pathlib import Path

import click

from nsysmodel.export import cache_folder

_FOLDER = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Another folder than the user's, for example one that --cache-beside made.",
)


@click.group()
def command() -> None:
    """Show or remove the decoded columns that --cache keeps.

    \b
    The folder is that of NSYSMODEL_CACHE_DIR, else the user's own for caches. It holds at most
    NSYSMODEL_CACHE_LIMIT bytes (10 GB without it); what was not used for longest goes first.
    """


@command.command()
@_FOLDER
def info(folder: Path | None) -> None:
    """Say where the cache is, how much it holds and how much it may hold."""
    from nsysmodel.units import bytes_, count

    place = folder or cache_folder.user_folder()
    held = cache_folder.entries(place)
    size = sum(entry.bytes for entry in held)
    click.echo(f"folder   {place}")
    click.echo(f"exports  {count(len(held))}")
    click.echo(f"size     {bytes_(size)} of at most {bytes_(cache_folder.limit_bytes())}")


@command.command()
@_FOLDER
def clear(folder: Path | None) -> None:
    """Remove everything that the cache holds."""
    from nsysmodel.units import bytes_

    place = folder or cache_folder.user_folder()
    click.echo(f"Removed {bytes_(cache_folder.clear(place))} from {place}.")
