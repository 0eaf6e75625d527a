"""`podtrail demo`: the main job, or a recorded story, from what is installed alone."""

import tempfile
from pathlib import Path
from typing import Final

import click

from podtrail.cli.run import command as run

_INSTALLED: Final = Path(__file__).parents[1] / "demo"
_CHECKOUT: Final = Path(__file__).parents[3]
_PLACES: Final = {
    "pipeline.yaml": "pipeline.yaml",
    "page.yaml": "examples/story/page.yaml",
    "story.otlp.zst": "examples/story/story.otlp.zst",
}
"""Files of a wheel, and where a checkout has them."""


@click.command("demo")
@click.option(
    "--story", is_flag=True, help="Show ten Pods that were recorded on a real node, in place of a simulation."
)
@click.option("--exit-when-done", is_flag=True, help="End when everything is decided and delivered.")
@click.option(
    "--port-offset", type=click.IntRange(0, 60_000), default=0, metavar="N", help="Add so much to every port."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for sampled spans and decisions. By default a new temporary one.",
)
@click.pass_context
def command(context: click.Context, story: bool, exit_when_done: bool, port_offset: int, output: Path | None) -> None:
    """Simulate ten minutes of a cluster, sample its scheduling attempts, and serve the page.

    It needs no cluster, no checkout and no configuration. Open the address that it prints; Ctrl-C ends it.
    """
    config = str(_shipped("page.yaml" if story else "pipeline.yaml"))
    folder = output or Path(tempfile.mkdtemp(prefix="podtrail-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    if story:
        changed = {"receivers.otlp_json_file.include": f'["{_shipped("story.otlp.zst")}"]'}
    else:
        names = {"path": "kept.jsonl", "decisions_path": "decisions.jsonl"}
        changed = {f"exporters.file.{key}": str(folder.resolve() / name) for key, name in names.items()}
    context.invoke(
        run,
        config=(config,),
        assignments=tuple(f"{key}={value}" for key, value in changed.items()),
        gates=frozenset(),
        exit_when_done=exit_when_done,
        port_offset=port_offset,
        as_json=False,
    )


def _shipped(name: str) -> Path:
    """Return where a file is that a wheel has."""
    installed = _INSTALLED / name
    return installed if installed.exists() else _CHECKOUT / _PLACES[name]
