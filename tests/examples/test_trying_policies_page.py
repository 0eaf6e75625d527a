"""The configuration of docs/trying-policies.md does what the page says."""

import json
import re
from pathlib import Path

from podtrail.otlp import write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

PAGE = (Path(__file__).parents[2] / "docs" / "trying-policies.md").read_text(encoding="utf-8")
PREFIX = "otelcol_processor_tail_sampling_"


def block(language: str) -> str:
    """Return the first block of the page in a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_what_is_tried_is_counted_and_shown_and_keeps_nothing() -> None:
    failed, placed = no_room(), MadeAttempt(number=2)
    run = replay(block("yaml"), [(one.start, write_request(one.groups())) for one in (failed, placed)])

    assert list(run.kept) == [failed.trace_id.hex()]
    assert run.decisions[0]["shadow"] == json.loads(block("json"))["shadow"]
    root = next(span.span for span in run.exported["debug"] if span.span.name == "SchedulePod")
    for name, example in re.findall(r"^\| `(podtrail\.sampling\.\w+)` \| `(.*?)`", PAGE, re.MULTILINE):
        assert root.attributes[name] == example


def test_the_page_names_every_metric_of_shadows() -> None:
    run = replay(block("yaml"), [(1, write_request(no_room().groups()))])
    named = set(re.findall(r"`(shadow_\w+)`", PAGE)) - {"shadow_policies"}
    assert named == {name.removeprefix(PREFIX) for name in run.metrics if name.startswith(PREFIX + "shadow_")}
