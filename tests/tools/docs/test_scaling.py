"""The tables of docs/scaling.md are what the model says, and its commands run."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.capacity import Figures, SpanCost, measured
from podtrail.cli import main
from tools.docs.scaling import replaced

ROOT = Path(__file__).parents[3]
DOCUMENT = (ROOT / "docs" / "scaling.md").read_text("utf-8")
COMMANDS = re.findall(r"^\$ podtrail (capacity .*)$", DOCUMENT, re.MULTILINE)


def test_every_figure_of_the_model_is_told() -> None:
    told = set(re.findall(r"^\| `(\w+)` \|", DOCUMENT, re.MULTILINE))
    assert set(Figures.model_fields) - {"machine", "turn_us"} <= told


def test_what_a_whole_core_takes_is_what_the_benchmarks_measured() -> None:
    (found,) = re.findall(
        r"at ([\d.]+) in Python that is ([\d,]+) spans a second .* at ([\d.]+), ([\d,]+) \(\[both",
        " ".join(DOCUMENT.split()),
    )
    plain, plain_spans, native, native_spans = found
    for cost, spans in ((plain, plain_spans), (native, native_spans)):
        assert int(spans.replace(",", "")) == round(1000 / float(cost)) * 1000
    native_page = (ROOT / "docs" / "native.md").read_text("utf-8")
    assert f"the whole pipeline {native} us instead of {plain}" in native_page
    measurements = " ".join((ROOT / "benchmarks" / "README.md").read_text("utf-8").split())
    assert re.search(rf"`pipeline`, 1,050,000 spans, two runs, {native} and [\d.]+ us a span to {plain} ", measurements)


def test_what_the_text_says_of_the_table_follows_from_the_figures() -> None:
    figures, text = measured(), " ".join(DOCUMENT.split())
    whole = figures.sample.and_then(figures.send, 0.05)
    assert f"plans with {0.6e6 / whole.spans(0.6, 168):.1f} us a span, for 60 % of a core" in text
    (shown,) = re.findall(
        r"15,360 spans ([\d.]+) us and 168 times ([\d.]+) ns, each further one ([\d.]+) us and as much, and of the "
        r"twentieth that is kept ([\d.]+) us and 168 times ([\d.]+) ns",
        text,
    )
    assert shown == (*_told(figures.sample), f"{figures.send.few_us:.2f}", f"{figures.send.byte_ns:.1f}")


def _told(cost: SpanCost) -> tuple[str, str, str]:
    return f"{cost.few_us:.2f}", f"{cost.byte_ns:.1f}", f"{cost.span_us:.2f}"


def test_a_document_without_marks_is_left_alone() -> None:
    with pytest.raises(ValueError, match=r"the document needs <!-- figures: written by"):
        replaced("# Nothing")


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs(command: str) -> None:
    done = CliRunner().invoke(main, shlex.split(command))
    assert (done.exit_code, done.stderr) == (0, "")
