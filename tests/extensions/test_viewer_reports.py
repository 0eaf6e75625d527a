import asyncio
import json
import re

import pytest
from aiohttp import ClientResponse
from podtrail_extensions.viewer.render import pod_path
from podtrail_extensions.viewer.reports import safe_name
from yarl import URL

from podtrail.otlp import Batch, Link
from podtrail.otlp.json import read_json_request
from podtrail.testing.attempts import START, MadeAttempt, no_room
from tests.extensions.asking import Viewing

UID = MadeAttempt().uid
SECOND = 10**9
HOSTILE = "`a`|<b onload=x>\x1b\u202e]8;; @all #1 [x](http://x)\n# no"


def asked(viewing: Viewing, path: str, *batches: Batch, status: int = 200) -> tuple[str, ClientResponse]:
    async def main() -> tuple[str, ClientResponse]:
        async with viewing(*batches) as (_, browser), browser.get(URL(path, encoded=True)) as answer:
            assert answer.status == status, await answer.text()
            return await answer.text(), answer

    return asyncio.run(main())


def attempts(count: int = 3) -> list[Batch]:
    return [no_room(number=n, start=START + n * SECOND).batch() for n in range(1, count + 1)]


def test_a_pods_story_is_markdown_for_a_ticket(viewing: Viewing) -> None:
    text, answer = asked(viewing, f"/pods/{UID}/report.md", *attempts())
    assert answer.content_type == "text/plain"
    assert text.startswith("# Pod `default/web-0`\n")
    assert "No node fits" in text
    assert "| `NodeAffinity` | 31 | `UnschedulableAndUnresolvable` |" in text
    assert re.search(
        r"^- page: `http://localhost:\d+/pods/1f3c0a52-0000-4000-8000-000000000001`, opens only where podtrail runs$",
        text,
        re.MULTILINE,
    )


def test_a_pods_story_is_a_page_that_needs_nothing_else(viewing: Viewing) -> None:
    text, answer = asked(viewing, f"/pods/{UID}/report.html", *attempts())
    assert answer.headers["Content-Disposition"] == 'attachment; filename="podtrail-default-web-0.html"'
    assert not re.findall(r'src=|<script|<link|href="(?!http://localhost:\d+/pods/)', text)
    assert "default-src 'none'; style-src 'sha256-" in text
    assert "NodeResourcesFit" in text


def test_a_report_can_be_asked_for_by_name(viewing: Viewing) -> None:
    assert asked(viewing, "/pods/default/web-0/report.md", *attempts())[0].startswith("# Pod `default/web-0`")


@pytest.mark.parametrize("name", ["report.md", "report.html", "perfetto.json"])
def test_a_pod_that_is_called_like_a_report_is_still_found(viewing: Viewing, name: str) -> None:
    batch = MadeAttempt(uid="", namespace="default", name=name).batch()
    for path in (f"/pods/default/{name}", f"/pods/default%2F{name}"):
        page, answer = asked(viewing, path, batch)
        assert answer.content_type == "text/html"
        assert f"<title>default/{name}" in page
    assert asked(viewing, f"/pods/default%2F{name}/report.md", batch)[0].startswith(f"# Pod `default/{name}`")
    assert asked(viewing, f"/pods/default/{name}/report.md", batch)[0].startswith(f"# Pod `default/{name}`")


def test_an_incident_tells_what_happened_in_a_range_of_time(viewing: Viewing) -> None:
    query = f"from={START}&to={START + 60 * SECOND}"
    page, _ = asked(viewing, f"/incident?{query}", *attempts())
    assert "3 attempts of 1 Pod in 1m: 3 Unschedulable. In the 1m before: none known." in page
    for words in ("Why attempts failed", "Pods concerned", "Slowest attempts", f'href="/pods/{UID}"'):
        assert words in page
    text, _ = asked(viewing, f"/incident.md?{query}", *attempts())
    assert text.startswith("# Incident 2026-09-21T14:13:20Z to 2026-09-21T14:14:20Z")
    html, answer = asked(viewing, f"/incident.html?{query}", *attempts())
    assert "default-src 'none'" in html
    name = 'attachment; filename="podtrail-incident-2026-09-21T14-13-20Z-2026-09-21T14-14-20Z.html"'
    assert answer.headers["Content-Disposition"] == name
    told = json.loads(asked(viewing, f"/api/v1/incident?{query}", *attempts())[0])
    assert told["attempts"] == {"Unschedulable": 3}
    assert told["pods"][0]["key"] == UID


def test_without_a_time_an_incident_is_the_last_half_hour(viewing: Viewing) -> None:
    page, _ = asked(viewing, "/incident", *attempts())
    assert "3 attempts of 1 Pod in 30m" in page
    assert "No attempt ended in this time" in asked(viewing, "/incident")[0]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("from=yesterday", "from is no moment: yesterday; write 14:02"),
        ("from=1%200", "from is no moment"),
        ("to=%1b%e2%80%ae", "to is no moment: \\x1b\\u202e"),
        ("from=now", "must be before"),
        ("from=99999999999999999d", "from is no moment"),
        (f"from={'9' * 500}", "from is no moment"),
    ],
)
def test_what_is_no_time_is_answered_in_words(viewing: Viewing, query: str, words: str) -> None:
    page, _ = asked(viewing, f"/incident?{query}", status=400)
    assert words in page
    assert words in json.loads(asked(viewing, f"/api/v1/incident?{query}", status=400)[0])["error"]
    assert words in asked(viewing, f"/incident.md?{query}", status=400)[0]


def test_a_trace_leaves_for_perfetto_and_as_otlp(viewing: Viewing) -> None:
    made = no_room()
    text, answer = asked(viewing, f"/traces/{made.trace_id.hex()}/perfetto.json", made.batch())
    name = f'attachment; filename="podtrail-trace-{made.trace_id.hex()}.perfetto.json"'
    assert answer.headers["Content-Disposition"] == name
    drawn = [event for event in json.loads(text)["traceEvents"] if event["ph"] == "X"]
    text, answer = asked(viewing, f"/traces/{made.trace_id.hex()}/otlp.json", made.batch())
    assert answer.content_type == "application/json"
    groups = read_json_request(text.encode()).groups
    assert len(drawn) == sum(group.span_count for group in groups) == made.groups()[0].span_count


def test_a_trace_that_is_not_held_has_no_export(viewing: Viewing) -> None:
    for file in ("perfetto.json", "otlp.json"):
        assert "not received" in asked(viewing, f"/traces/{'ab' * 16}/{file}", status=404)[0]
        asked(viewing, f"/traces/nonsense/{file}", status=400)


def test_a_pod_leaves_for_perfetto_with_all_its_attempts_and_their_links(viewing: Viewing) -> None:
    first, second = no_room(), no_room(number=2, start=START + SECOND, links=[])
    second = no_room(number=2, start=START + SECOND, links=[Link(first.trace_id, first.root_id, {})])
    told = json.loads(asked(viewing, f"/pods/{UID}/perfetto.json", first.batch(), second.batch())[0])
    threads = {event["args"]["name"] for event in told["traceEvents"] if event["name"] == "thread_name"}
    assert threads == {f"attempt {one.number} {one.trace_id.hex()[:8]}" for one in (first, second)}
    arrows = [event["ph"] for event in told["traceEvents"] if event.get("cat") == "link"]
    assert arrows == ["s", "f"]


async def test_hostile_names_have_no_power_in_any_report(viewing: Viewing) -> None:
    attempt = MadeAttempt(
        uid=HOSTILE, namespace=HOSTILE, name=HOSTILE, result=HOSTILE, message=HOSTILE, bind_error=HOSTILE
    )

    async with viewing(attempt.batch("sampled", HOSTILE, HOSTILE)) as (viewer, browser):
        (key,) = [pod.key for pod in viewer.stories.pods()]
        query = f"?from={START}&to={START + SECOND}"
        for path in (f"{pod_path(key)}/report.", "/incident."):
            for kind in ("md", "html"):
                async with browser.get(URL(path + kind + query, encoded=True)) as answer:
                    text = await answer.text()
                    assert answer.status == 200, text
                    assert "filename" not in answer.headers or "\x1b" not in answer.headers["Content-Disposition"]
                assert all(c.isprintable() or c == "\n" for c in text)
                assert "\\x1b\\u202e" in text
                assert kind == "md" or "<b onload" not in text


@pytest.mark.parametrize(
    ("name", "safe"),
    [("default-web-0", "default-web-0"), ('../../x\r\n"', "x"), ("\u202e", "unnamed"), ("a" * 300, "a" * 100)],
)
def test_names_of_files_are_safe_anywhere(name: str, safe: str) -> None:
    assert safe_name(name) == safe


def test_the_address_of_an_incident_is_one_that_people_read(viewing: Viewing) -> None:
    query = f"from={START // SECOND - 60}.5&to={START // SECOND}"
    page, _ = asked(viewing, f"/incident?{query}", *attempts())
    found = re.search(r'href="(/incident\?from=[^"&]*&amp;to=[^"]*)"', page)
    assert found
    written = found[1].replace("&amp;", "&")
    assert re.fullmatch(r"/incident\?from=2\d{3}-\d\d-\d\dT[\d:]{8}\.500000Z&to=2\d{3}-\d\d-\d\dT[\d:]{8}Z", written)
    told, other = (
        asked(viewing, path.replace("/incident", "/api/v1/incident"), *attempts())[0]
        for path in (f"/incident?{query}", written)
    )
    assert json.loads(told) == json.loads(other)
    text, _ = asked(viewing, f"/incident.md?{query}", *attempts())
    assert f"{written}`" in text


def test_of_localhost_links_are_said_to_open_only_where_podtrail_runs(viewing: Viewing) -> None:
    only_here = "links open only where podtrail runs"

    async def asked_as(host: str) -> tuple[str, str]:
        async with viewing(*attempts(), allowed_hosts=["podtrail.example"]) as (_, browser):
            async with browser.get(f"/pods/{UID}", headers={"Host": host}) as answer:
                page = await answer.text()
            async with browser.get(f"/pods/{UID}/report.html", headers={"Host": host}) as answer:
                return page, await answer.text()

    page, report = asyncio.run(asked_as("localhost:15927"))
    assert only_here in page
    assert "opens only where podtrail runs" in report
    page, report = asyncio.run(asked_as("podtrail.example"))
    assert only_here not in page
    assert "opens only where podtrail runs" not in report


def test_pages_have_links_for_a_ticket(viewing: Viewing) -> None:
    trace = no_room().trace_id.hex()
    page, _ = asked(viewing, f"/pods/{UID}", *attempts())
    for path in (f"/pods/{UID}/report.md", f"/pods/{UID}/report.html", f"/pods/{UID}/perfetto.json"):
        assert f'href="{path}"' in page
    page, _ = asked(viewing, f"/traces/{trace}", *attempts())
    assert f'href="/traces/{trace}/perfetto.json"' in page
    assert f'href="/traces/{trace}/otlp.json"' in page


@pytest.mark.parametrize(
    ("path", "named"),
    [
        (
            f"/incident?from={START}&to={START + 60 * SECOND}",
            {"/plugins/NodeAffinity", "/nodes/tight0", f"/pods/{UID}"},
        ),
        ("/pods/other", {"/plugins/NodeAffinity", "/nodes/tight0", "/?q=profile%3Adefault-scheduler&state=all"}),
        (f"/pods/{UID}/attempts/2", {"/plugins/NodeAffinity", "/nodes/tight0"}),
        (f"/pods/{UID}/compare?a=1&b=4", {"/plugins/NodeAffinity", "/nodes/tight0", "/nodes/node-1"}),
        ("/nodes/tight0", {"/plugins/NodeResourcesFit", "/pods/other"}),
        ("/plugins", {"/plugins/NodeAffinity"}),
    ],
)
async def test_what_has_a_page_is_a_link_to_it_wherever_it_is_named(
    viewing: Viewing, path: str, named: set[str]
) -> None:
    bound = MadeAttempt(number=4, start=START + 4 * SECOND, node="node-1")
    other = no_room(uid="other", name="other", start=START + SECOND)
    async with viewing(*attempts(), bound.batch(), other.batch()) as (_, browser):
        async with browser.get(URL(path, encoded=True)) as answer:
            page = await answer.text()
        links = {link.replace("&amp;", "&") for link in re.findall(r'<a [^>]*href="([^"]*)"', page)}
        assert named <= links
        for link in sorted(one for one in links if re.match("/(nodes|plugins|pods)/", one)):
            async with browser.get(URL(link, encoded=True)) as answer:
                assert answer.status == 200, link
    bare = re.findall(r"<t[hd][^>]*><bdi>(NodeAffinity|NodeResourcesFit|tight0|node-1)</bdi>", page)
    assert bare == []
