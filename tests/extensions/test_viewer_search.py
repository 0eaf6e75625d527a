import asyncio
import json
from urllib.parse import urlencode

import pytest

from podtrail.otlp import Batch
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing
from tests.extensions.browser import Browse

BATCHES = (
    no_room().batch(),
    MadeAttempt(uid="first", namespace="batch", name="train-0").batch(),
    MadeAttempt(uid="second", namespace="batch", name="train-0", start=START + 10**9).batch(),
)


def get(viewing: Viewing, path: str, *batches: Batch, status: int = 200, **query: str) -> str:
    async def main() -> str:
        async with viewing(*(batches or BATCHES)) as (_, browser), browser.get(f"{path}?{urlencode(query)}") as answer:
            assert answer.status == status
            return await answer.text()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "pasted", ["\u201cno such words\u201d", "\u201eno such words\u201c", "\u00abno such words\u00bb"]
)
def test_quotes_that_a_chat_made_are_quotes(viewing: Viewing, pasted: str) -> None:
    straight = json.loads(get(viewing, "/api/v1/pods", q='reason:"affinity/selector"'))
    assert straight["matching"] == 1
    curly = pasted.replace("no such words", "affinity/selector")
    assert json.loads(get(viewing, "/api/v1/pods", q=f"reason:{curly} web"))["matching"] == 1
    assert json.loads(get(viewing, "/api/v1/pods", q=f"reason:{pasted}"))["matching"] == 0
    told = json.loads(get(viewing, "/api/v1/pods", q=f"reason:{pasted[:-1]}", status=400))
    assert told["error"] == 'A quote is not closed: reason:"no such words" would be right.'


def test_page_and_api_understand_the_same_search(viewing: Viewing) -> None:
    told = json.loads(get(viewing, "/api/v1/pods", q="ns:batch state:scheduled"))
    assert [pod["key"] for pod in told["pods"]] == ["first", "second"]
    page = get(viewing, "/", q="plugin:NodeAffinity -ns:batch")
    assert "/pods/1f3c0a52" in page
    assert "/pods/first" not in page


def test_a_state_that_is_searched_for_is_not_hidden_by_the_state_that_is_chosen(viewing: Viewing) -> None:
    page = get(viewing, "/", q="state:scheduled")
    assert "/pods/first" in page
    assert "In other states" not in page


def test_a_search_that_is_not_understood_stays_in_its_field_with_what_would_be_right(viewing: Viewing) -> None:
    page = get(viewing, "/", q="plugn:<b>", status=400)
    assert 'value="plugn:&lt;b&gt;"' in page
    assert 'aria-invalid="true"' in page
    assert "There is no key plugn:. Did you mean plugin:?" in page
    told = json.loads(get(viewing, "/api/v1/pods", q="plugn:<b>", status=400))
    assert told["error"].startswith("There is no key plugn:. Did you mean plugin:?")


def test_a_search_that_is_far_too_long_is_refused_in_words(viewing: Viewing) -> None:
    assert "at most 256 characters" in get(viewing, "/", q="a" * 9_000, status=400)
    beyond = get(viewing, "/", q="a" * 40_000, status=400)
    assert beyond == "The address or a header is too long: 32,768 bytes are the most."


def test_the_range_of_a_search_is_told_as_exact_times(viewing: Viewing) -> None:
    page = get(viewing, "/", q="since:2026-09-21T14:13:20Z")
    assert '<time datetime="2026-09-21T14:13:20Z">' in page
    assert "/pods/1f3c0a52" in page


def test_the_field_offers_what_the_pods_held_have(viewing: Viewing) -> None:
    assert '<option value="plugin:NodeAffinity">1 Pod</option>' in get(viewing, "/")
    told = json.loads(get(viewing, "/api/v1/suggest", q="web ns:ba"))
    assert told["suggestions"] == [{"text": "web ns:batch", "meaning": "2 Pods"}]
    get(viewing, "/api/v1/suggest", q="x" * 257, status=400)


def test_the_field_of_traces_offers_what_the_traces_held_have(viewing: Viewing) -> None:
    page = get(viewing, "/traces")
    assert '<option value="name:SchedulePod">3 traces</option>' in page
    assert '<option value="state:unschedulable">1 trace</option>' in page
    assert 'data-suggested-by="/api/v1/traces/suggest"' in page

    def suggested(typed: str) -> list[dict[str, str]]:
        told: list[dict[str, str]] = json.loads(get(viewing, "/api/v1/traces/suggest", q=typed))["suggestions"]
        return told

    assert suggested("web -name:sched") == [{"text": "web -name:SchedulePod", "meaning": "3 traces"}]
    assert suggested("spa") == [{"text": "spans:", "meaning": "how many it has: spans:>100"}]
    assert suggested("node:x") == []
    get(viewing, "/api/v1/traces/suggest", q="x" * 257, status=400)


def test_a_pod_is_found_by_its_name_the_latest_with_the_others_beside_it(viewing: Viewing) -> None:
    page = get(viewing, "/pods/batch/train-0")
    assert "<code>second</code>" in page
    assert 'href="/pods/first"' in page
    told = json.loads(get(viewing, "/api/v1/pods/batch/train-0"))
    assert (told["pod"]["uid"], [other["key"] for other in told["namesakes"]]) == ("second", ["first"])
    get(viewing, "/pods/batch/train-1", status=404)


def test_what_belongs_to_a_pod_has_an_address_by_its_name_too(viewing: Viewing) -> None:
    assert "/pods/second" in get(viewing, "/pods/batch/train-0/attempts")
    told = json.loads(get(viewing, "/api/v1/pods/batch/train-0/attempts/1"))
    assert told == json.loads(get(viewing, "/api/v1/pods/second/attempts/1"))
    get(viewing, "/pods/batch/train-1/attempts/1", status=404)


def test_many_pods_are_searched_beside_the_receivers(viewing: Viewing) -> None:
    batch = Batch([], START, [MadeAttempt(uid=f"u{n}", name=f"web-{n}").verdict("not_sampled") for n in range(2_100)])
    told = json.loads(get(viewing, "/api/v1/pods", batch, q="web-20 state:scheduled"))
    assert (told["matching"], told["total"]) == (111, 2_100)


@pytest.mark.slow
async def test_the_field_goes_on_with_what_is_typed(viewing: Viewing, browse: Browse) -> None:
    typed = """(() => { const field = document.getElementById("search"); field.value = "TYPED";
    field.dispatchEvent(new Event("input")); })()"""
    offered = "[...document.querySelectorAll('#suggested option')].map((one) => one.value).join()"

    async with viewing(*BATCHES) as (viewer, _), browse() as browser:
        await browser.look(width=380)
        await browser.open(viewer.page)
        await browser.says(typed.replace("TYPED", "web plugin:Taint"))
        await browser.until(f"{offered} === 'web plugin:TaintToleration'")
        await browser.open(f"{viewer.page}traces")
        await browser.says(typed.replace("TYPED", "web name:Sche"))
        await browser.until(f"{offered} === 'web name:SchedulePod'")
