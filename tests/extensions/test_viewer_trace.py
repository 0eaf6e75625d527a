"""A trace's page and its rows as JSON: what there is without a script, and what the script is given."""

import asyncio
import json
import re

import pytest

from podtrail.otlp import Batch, encode_span, frame
from podtrail.testing.attempts import MadeAttempt
from tests.extensions.asking import Viewing, get
from tests.extensions.big_trace import SHORT, TRACE, WHOLE, big_trace, span_id

ID = TRACE.hex()


def big(count: int) -> Batch:
    return Batch([big_trace(count)], 0)


def test_rows_come_compact_and_in_parts(viewing: Viewing) -> None:
    told = json.loads(get(viewing, f"/api/v1/traces/{ID}/rows?limit=3", big(20)))
    assert told["columns"] == [
        *("spanId", "depth", "name", "service", "offset", "duration"),
        *("flags", "children", "links"),
    ]
    assert (told["traceId"], told["spans"], told["duration"], told["first"]) == (ID, 20, WHOLE, 0)
    assert told["rows"][0] == [span_id(0).hex(), 0, "Everything", "kube-scheduler", 0, WHOLE, 4, 7, 0]
    assert told["rows"][1][1:6] == [1, "plugin: P1", "kube-scheduler", WHOLE // 21, SHORT]
    rest = json.loads(get(viewing, f"/api/v1/traces/{ID}/rows?from=3", big(20)))
    assert (rest["first"], len(rest["rows"])) == (3, 17)
    assert json.loads(get(viewing, f"/api/v1/traces/{ID}/rows?from=30", big(20)))["rows"] == []


def test_rows_of_one_answer_are_bounded(viewing: Viewing) -> None:
    told = json.loads(get(viewing, f"/api/v1/traces/{ID}/rows", big(5_200)))
    assert (told["spans"], len(told["rows"])) == (5_200, 5_000)
    words = json.loads(get(viewing, f"/api/v1/traces/{ID}/rows?limit=5001", big(5), status=400))
    assert words["error"] == "limit is a number from 0 to 5,000."


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/api/v1/traces/zz/rows", "A trace id has 32 hexadecimal digits."),
        (f"/api/v1/traces/{ID}/rows?from=-1", "from is a number from 0 to 999,999,999."),
        (f"/traces/{ID}?from=x", "from is a number from 0 to 999,999,999."),
        (f"/traces/{ID}?span=12", "A span id has 16 hexadecimal digits."),
        (f"/traces/{ID}/spans/12", "A span id has 16 hexadecimal digits."),
    ],
)
def test_what_is_no_id_or_number_is_refused_in_words(viewing: Viewing, path: str, words: str) -> None:
    assert words in get(viewing, path, big(5), status=400)


def test_names_of_rows_are_harmless_and_no_longer_than_on_a_page(viewing: Viewing) -> None:
    (group,) = MadeAttempt().groups()
    evil = encode_span(trace_id=group.trace_id, span_id=b"evilevil", name="\u202e<b>" + "x" * 9_000, start=1, end=2)
    batch = Batch([group._replace(spans=frame([evil]), span_count=1)], 0)
    [row] = json.loads(get(viewing, f"/api/v1/traces/{group.trace_id.hex()}/rows", batch))["rows"]
    assert row[2].startswith("\\u202e<b>xxx")
    assert len(row[2]) < 300


def test_what_is_not_held_is_said_to_be(viewing: Viewing) -> None:
    assert json.loads(get(viewing, f"/api/v1/traces/{ID}/rows", status=404)) == {"error": "not received"}
    assert "This trace is not held" in get(viewing, f"/traces/{ID}", status=404)
    gone = get(viewing, f"/traces/{ID}/spans/{span_id(7).hex()}", big(5), status=404)
    assert "this span was not received, others of its trace were" in gone


def test_without_a_script_the_table_has_pages_and_a_link_to_a_span_leads_to_its_page(viewing: Viewing) -> None:
    async def walk() -> list[str]:
        async with viewing(big(1_300)) as (_, browser):
            shown, address = [], f"/traces/{ID}"
            while address:
                async with browser.get(address) as answer:
                    page = await answer.text()
                shown += re.findall(r'<tr id="s-([0-9a-f]{16})"', page)
                following = re.search(r'<a href="([^"]+)" rel="next">', page)
                address = following[1] if following else ""
            return shown

    shown = asyncio.run(walk())
    assert sorted(shown) == sorted(span_id(number).hex() for number in range(1_300))
    last = shown[-1]
    page = get(viewing, f"/traces/{ID}?span={last}", big(1_300))
    assert f'<tr id="s-{last}" class="chosen" aria-current="true">' in page
    assert "spans 1,001 to 1,300 of 1,300" in page


def test_the_critical_path_is_marked_in_words_as_well(viewing: Viewing) -> None:
    made = MadeAttempt()
    page = get(viewing, f"/traces/{made.trace_id.hex()}", made.batch())
    marked = re.findall(r"<bdi>([^<]*)</bdi></a>\s*<span class=\"hide\">on the critical path", page)
    assert marked[0] == "SchedulePod"
    assert {"schedulingCycle", "bindingCycle"} <= set(marked)
    assert page.count('class="critical"') == len(marked)


def test_where_the_time_went_is_told_by_plugin(viewing: Viewing) -> None:
    page = get(viewing, f"/traces/{ID}", big(20))
    assert re.search(r"Where the time went: <bdi>Everything</bdi> 100 %", page)
    assert re.search(r"<bdi>P3</bdi></a>.*?<bdi>filter</bdi>.*?under 1 %", page, flags=re.DOTALL)


def test_a_span_has_a_page_of_its_own_with_its_links(viewing: Viewing) -> None:
    made = MadeAttempt()
    page = get(viewing, f"/traces/{made.trace_id.hex()}/spans/{made.root_id.hex()}", made.batch())
    assert '<div id="details">' in page
    assert "k8s.pod.uid" in page
    assert f'href="/traces/{made.trace_id.hex()}?span={made.root_id.hex()}#s-{made.root_id.hex()}" id="up"' in page
