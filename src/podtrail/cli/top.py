"""`podtrail top`: what goes on in a running podtrail, drawn anew each second."""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import click

from podtrail.cli.cutting import fit
from podtrail.cli.durations import DURATION
from podtrail.cli.reading import Failed
from podtrail.cli.running_page import NobodyThere, endpoint_option, get_json, no_page
from podtrail.cli.top_screen import SORTS, Look, draw
from podtrail.config import printable
from podtrail.story import visible

_PATH: Final = "/api/v1/top"
_SECOND: Final = 1_000_000_000
_PATIENCE: Final = 3.0
"""Seconds that a page has to answer while keys wait."""
_HELP: Final = (
    "q, Ctrl-C   end",
    "s           sort plugins by longest, median, attempts, name",
    "/           filter rows by name or reason; Enter keeps it, Esc clears it",
    "p, space    pause, and go on",
    "?           this, and back",
)


@dataclass(slots=True)
class _State:
    told: Mapping[str, Any]
    look: Look
    paused: bool = False
    helping: bool = False
    typing: bool = False
    ended: bool = False

    def press(self, keys: str) -> None:
        """Do what keys say; several may come at once."""
        if keys == "\x1b":
            self.typing, self.helping = False, False
            self.look = replace(self.look, filter="")
        elif not keys.startswith("\x1b"):  # arrows and their like are none of ours
            for key in keys:
                if self.typing:
                    self._type(key)
                else:
                    self._command(key)

    def _type(self, key: str) -> None:
        if key in "\r\n":
            self.typing = False
        elif key in "\x7f\b":
            self.look = replace(self.look, filter=self.look.filter[:-1])
        elif key == "\x04":
            self.ended = True
        elif key.isprintable():
            self.look = replace(self.look, filter=self.look.filter + key)

    def _command(self, key: str) -> None:
        match key:
            case "q" | "Q" | "\x04":
                self.ended = True
            case "s":
                self.look = replace(self.look, sort=SORTS[(SORTS.index(self.look.sort) + 1) % len(SORTS)])
            case "/":
                self.typing, self.helping = True, False
            case "p" | " ":
                self.paused = not self.paused
            case "?" | "h":
                self.helping = not self.helping

    def foot(self) -> str:
        """Return the last line: what keys do, or what is typed."""
        if self.typing:
            return f"/{visible(self.look.filter)}_   Enter keeps the filter, Esc clears it"
        state = ["paused" if self.paused else "", f"filter: {visible(self.look.filter)}" if self.look.filter else ""]
        keys = f"q ends, ? helps, s: sorted by {self.look.sort}, / filters, p pauses"
        return "   ".join(filter(None, ["; ".join(filter(None, state)), keys]))


@click.command("top")
@endpoint_option
@click.option("--interval", type=DURATION, default="1s", show_default=True, help="How often it is asked and drawn.")
@click.option(
    "--once", is_flag=True, help="Print how it stands and end, as is done where no terminal is, or a dumb one."
)
@click.option("--sort", type=click.Choice(SORTS), default=SORTS[0], show_default=True, help="How plugins are sorted.")
@click.option(
    "--filter",
    "wanted",
    default="",
    metavar="TEXT",
    help="Only rows that have this in a name or reason; policies and exporters stay.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="json: one object, and end.")
def command(endpoint: str, interval: int, once: bool, sort: str, wanted: str, output: str) -> None:
    """Show what goes on in a running podtrail: attempts, who waits, slow plugins, refusals, policies, the pipeline.

    Keys: q ends, s sorts, / filters, p pauses, ? helps. Exit code 1: nobody to ask.
    """
    look = Look(sort=sort, filter=wanted)
    try:
        told = _ask(endpoint)
    except NobodyThere as problem:
        raise Failed(str(problem)) from None
    if output == "json":
        click.echo(json.dumps(told))
    elif once or not (sys.stdout.isatty() and sys.stdin.isatty()) or os.environ.get("TERM", "dumb") == "dumb":
        click.echo("\n".join(draw(told, look)))
    else:
        _watch(endpoint, interval / _SECOND, _State(told, replace(look, colour=not os.environ.get("NO_COLOR"))))


def _ask(endpoint: str) -> dict[str, Any]:
    told = get_json(endpoint, _PATH, {}, _PATIENCE)
    if "nowUnixNano" not in told:
        raise no_page(endpoint)
    return told


def _watch(endpoint: str, interval: float, state: _State) -> None:
    from podtrail.cli.keys import full_screen

    with full_screen() as screen:
        due = time.monotonic() + interval
        try:
            while not state.ended:
                screen.draw(_screen(state))
                state.press(screen.key(due - time.monotonic()))
                if time.monotonic() >= due:
                    due = time.monotonic() + interval
                    _refresh(endpoint, state)
        except KeyboardInterrupt:
            return


def _refresh(endpoint: str, state: _State) -> None:
    if state.paused:
        return
    try:
        state.told, problem = _ask(endpoint), ""
    except NobodyThere as nobody:
        problem = printable(str(nobody))
    state.look = replace(state.look, problem=problem)


def _screen(state: _State) -> list[str]:
    width, height = shutil.get_terminal_size()
    if state.helping:
        return [fit(line, width) for line in ("podtrail top", "", *_HELP)][:height]
    lines = draw(state.told, replace(state.look, width=width, height=height - 1))
    lines += [""] * (height - 1 - len(lines))
    return [*lines, fit(state.foot(), width)]
