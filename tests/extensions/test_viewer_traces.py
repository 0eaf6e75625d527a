import asyncio
import json
from urllib.parse import urlencode

import pytest

from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing

BATCHES = (no_room().batch(), MadeAttempt(uid="slow", name="<b>", start=START + 10**9, duration=5 * 10**9).batch())


def get(viewing: Viewing, path: str, *, status: int = 200, **query: str) -> str:
    async def main() -> str:
        async with viewing(*BATCHES) as (_, browser), browser.get(f"{path}?{urlencode(query)}") as answer:
            assert answer.status == status
            return await answer.text()

    return asyncio.run(main())


def test_all_traces_held_are_listed_the_latest_or_the_longest_first(viewing: Viewing) -> None:
    page = get(viewing, "/traces")
    assert page.index("default/&lt;b&gt;") < page.index("default/web-0")
    assert "1 to 2 of 2" in page
    assert 'href="/decisions/' in page
    told = json.loads(get(viewing, "/api/v1/traces", sort="duration"))
    assert [trace["duration"] for trace in told["traces"]] == [5 * 10**9, 9_000_000]
    assert told["traces"][1]["traceId"] == no_room().trace_id.hex()


def test_a_search_finds_traces_and_counts_them(viewing: Viewing) -> None:
    page = get(viewing, "/traces", q="slower:1s")
    assert "1 to 1 of 1 found, of 2 held" in page
    assert "default/web-0" not in page
    assert "No trace matches" in get(viewing, "/traces", q="name:nothing")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"q": "plugin:x"}, "There is no key plugin:."),
        ({"sort": "name"}, "sort is one of time, duration."),
        ({"after": "x"}, "after is the number of traces to pass over."),
        ({"q": "x" * 257}, "A search has at most 256 characters."),
    ],
)
def test_what_is_not_asked_well_is_told(viewing: Viewing, query: dict[str, str], words: str) -> None:
    assert words in json.loads(get(viewing, "/api/v1/traces", status=400, **query))["error"]
    assert words in get(viewing, "/traces", status=400, **query)
