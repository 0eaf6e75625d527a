"""What `podtrail why pending`, `node`, `plugin` and `change` ask of a running page."""

import json
from typing import Any

import pytest

from podtrail.testing.attempts import MadeAttempt, no_room
from tests.extensions.asking import Viewing


@pytest.mark.parametrize(
    ("query", "status", "within"),
    [
        ("pending", 200, "2 Pods wait for the same reason"),
        ("pending=true", 200, "2 Pods wait for the same reason"),
        ("node=tight0", 200, "Node tight0: 0 Pods bound"),
        ("plugin=nodeaffinity", 200, "Plugin NodeAffinity: "),
        ("change", 404, "no change of it can be seen"),
        ("node=nobody", 404, "nothing is known of node nobody"),
        ("node=", 200, "nodes, those refused most first"),
        ("node=a&pod=b", 400, "nothing beside"),
        ("change=noon", 400, "change is a time"),
        (f"plugin={'x' * 513}", 400, "at most 512"),
    ],
)
async def test_the_api_answers(viewing: Viewing, query: str, status: int, within: str) -> None:
    pods = [no_room(), no_room(uid="two", name="web-1"), MadeAttempt(uid="three", name="web-2")]
    async with (
        viewing(*(pod.batch() for pod in pods)) as (_, browser),
        browser.get(f"/api/v1/why?{query}") as answer,
    ):
        assert answer.status == status
        told: dict[str, Any] = json.loads(await answer.text())
    words = told["error"] if status != 200 else "".join(piece["text"] for piece in told["lines"][0])
    assert within in words
