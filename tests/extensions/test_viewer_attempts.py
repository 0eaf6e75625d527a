"""Pages of a Pod's way and attempts: the list from a number on, one of them, two side by side."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from podtrail.otlp import Batch
from podtrail.recording import Record, read_recording
from podtrail.testing.attempts import START, MadeAttempt, No, no_room
from tests.extensions.asking import Viewing, get

STORY = Path(__file__).parents[2] / "examples" / "story" / "story.otlp.zst"
CRASH = "487d8cd3-20e1-48a3-b084-c998c524f150"
UID = MadeAttempt().uid
SECOND = 10**9


def text(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def many(count: int) -> list[Batch]:
    return [no_room(number=n, start=START + n * 10 * SECOND).batch() for n in range(1, count + 1)]


def three() -> list[Batch]:
    fewer = [No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["tight0", "cp-0"])]
    return [
        no_room(number=1).batch(),
        no_room(number=2, start=START + 30 * SECOND, refusals=fewer).batch(),
        MadeAttempt(number=3, start=START + 60 * SECOND).batch(),
    ]


def test_the_page_of_a_pod_has_its_way_as_rows_that_read_without_a_drawing(viewing: Viewing) -> None:
    story = [Batch(one.intake.groups, one.arrival) for one in read_recording(STORY) if isinstance(one, Record)]
    page = get(viewing, f"/pods/{CRASH}", *story)
    way = page[page.index('id="way"') : page.index("</table>")]
    rows = [text(row) for row in re.findall(r"<tr class.*?</tr>", way, flags=re.DOTALL)]
    assert rows[0] == "17:13:33 created by admin (its user agent) 0 s 6.68 ms"
    assert rows[-1].startswith("17:13:48 back-off (CrashLoopBackOff): main 14.9 s")
    assert rows[-1].endswith(", goes on")
    for row in re.findall(r"<tr class.*?</tr>", way, flags=re.DOTALL):
        assert ('class="wait"' in row) != ("<a " in row)


def test_the_way_leads_to_attempts_and_to_traces(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}", *many(40))
    assert f'<a class="row" href="/pods/{UID}/attempts/1">' in page
    assert f'<a class="row" href="/pods/{UID}/attempts?from=2">' in page


def test_pages_of_attempts_lead_on_until_all_that_are_held_were_shown(viewing: Viewing) -> None:
    batches = many(130)

    async def walk(first: str, way: str) -> list[list[int]]:
        async with viewing(*batches) as (_, browser):
            shown, address = [], first
            while address:
                async with browser.get(address) as answer:
                    page = await answer.text()
                shown.append(
                    [int(n) for n in re.findall(rf'scope="row"[^>]*><a href="/pods/{UID}/attempts/(\d+)"', page)]
                )
                following = re.search(rf'<a href="([^"]+)" rel="{way}">', page)
                address = following[1] if following else ""
            return shown

    forth = asyncio.run(walk(f"/pods/{UID}/attempts", "next"))
    assert [one for page in forth for one in page] == [1, *range(32, 131)]
    back = asyncio.run(walk(f"/pods/{UID}/attempts?from=130", "prev"))
    assert {one for page in back for one in page} == {1, *range(32, 131)}


def test_attempts_no_longer_held_are_named_with_why(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}/attempts", *many(110))
    assert "2 to 11: no longer held: of a Pod with so many the first and the latest are kept" in text(page)
    gone = get(viewing, f"/pods/{UID}/attempts/5", *many(110), status=404)
    assert "Attempt 5 is not held" in gone
    assert "no longer held" in gone
    assert f'<a href="/pods/{UID}/attempts/1" rel="prev">' in gone
    assert f'<a href="/pods/{UID}/attempts/12" rel="next">' in gone
    told = json.loads(get(viewing, f"/api/v1/pods/{UID}/attempts/5", *many(110), status=404))
    assert told["error"].startswith("attempt 5 is not held: no longer held")


def test_an_attempt_has_a_page_that_tells_why_and_leads_to_its_neighbours(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}/attempts/2", *three())
    assert "Attempt 2 of 3" in text(page)
    for words in ("Who said no", "tight0", "Where the time went", "NodeResourcesFit"):
        assert words in page
    for link in ("attempts/1", "attempts/3", "compare?a=1&amp;b=2", "compare?a=2&amp;b=3"):
        assert f'href="/pods/{UID}/{link}"' in page
    chosen = get(viewing, f"/pods/{UID}/attempts/1", MadeAttempt(scores={}, nodes=1, evaluated=1).batch())
    assert "node-07 is the only node there is: nothing was scored." in chosen


def test_two_attempts_stand_side_by_side(viewing: Viewing) -> None:
    page = get(viewing, f"/pods/{UID}/compare?a=1&b=2", *three())
    told = text(page)
    assert "NodeAffinity 31 0 changed no match" in told
    assert "NodeResourcesFit 2 2 same Insufficient cpu" in told
    assert "cp-0 TaintToleration NodeResourcesFit" in told
    assert "result Unschedulable Unschedulable same" in told
    api = json.loads(get(viewing, f"/api/v1/pods/{UID}/compare?a=1&b=2", *three()))
    assert api["comparison"]["refusals"][1] == {
        "plugin": "NodeAffinity",
        "one": 31,
        "other": 0,
        "reasons": ["no match"],
    }


def test_without_numbers_the_first_and_the_last_are_compared(viewing: Viewing) -> None:
    assert "Attempt 1 beside attempt 3" in get(viewing, f"/pods/{UID}/compare", *three())


def test_an_attempt_to_compare_with_that_is_not_held_is_named(viewing: Viewing) -> None:
    assert "Attempt 9 is not held" in get(viewing, f"/pods/{UID}/compare?a=1&b=9", *three(), status=404)


@pytest.mark.parametrize("path", ["attempts?from=x", "attempts?from=9999999999", "compare?a=-1", "attempts/two"])
@pytest.mark.parametrize("api", ["", "/api/v1"])
def test_what_is_no_number_is_refused_in_words(viewing: Viewing, path: str, api: str) -> None:
    assert "is a number from 1 to 999,999,999." in get(viewing, f"{api}/pods/{UID}/{path}", *three(), status=400)


@pytest.mark.parametrize("name", ["attempts", "compare"])
def test_a_pod_or_namespace_of_such_a_name_stands_in_nobodys_way(viewing: Viewing, name: str) -> None:
    nameless = MadeAttempt(uid="", namespace="default", name=name).batch()
    turned = MadeAttempt(uid="", namespace=name, name="web", number=2).batch()
    for path, title in ((f"default%2F{name}", f"default/{name}"), (f"{name}%2Fweb", f"{name}/web")):
        assert f"<title>{title} " in get(viewing, f"/pods/{path}", nameless, turned)
        assert "Attempts of" in get(viewing, f"/pods/{path}/attempts", nameless, turned)
    assert f"<title>default/{name} " in get(viewing, f"/pods/default/{name}", nameless, turned)
    assert f"<title>{name}/web " in get(viewing, f"/pods/{name}/web", nameless, turned)
    known = MadeAttempt(namespace="default", name=name).batch()
    assert f"<title>default/{name} " in get(viewing, f"/pods/default/{name}", known)


def test_names_in_attempts_are_only_text(viewing: Viewing) -> None:
    evil = "<script>alert(1)</script>\u202e"
    bad = [No(plugin=evil, reason=evil, nodes=[evil])]
    attempts = [no_room(number=n, start=START + n * SECOND, name=evil, message=evil, refusals=bad) for n in (1, 2)]
    for path in ("", "/attempts", "/attempts/1", "/compare"):
        page = get(viewing, f"/pods/{UID}{path}", *(one.batch() for one in attempts))
        assert "<script>alert" not in page
        assert "\u202e" not in page
