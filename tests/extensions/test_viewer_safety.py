import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from podtrail_extensions.viewer import Config
from podtrail_extensions.viewer.guard import is_allowed_host
from podtrail_extensions.viewer.render import pod_path
from pydantic import ValidationError
from yarl import URL

from podtrail.otlp import Batch, Event, Group, Link, Status, encode_span, frame, resource_header, scope_header
from podtrail.testing.attempts import START, MadeAttempt, No, no_room
from tests.extensions.asking import Viewing

HOSTILE = "\"'>\n<xss onload=x>\x1b]8;;http://x\x07\u202e</td></script>{{7*7}}\x00\u200b"
TEMPLATES = [one for one in (files("podtrail_extensions.viewer") / "templates").iterdir() if one.name.endswith(".html")]


class Seen(HTMLParser):
    """Tags, attributes and addresses of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "action")]


def hostile_everywhere() -> tuple[list[Batch], bytes]:
    hostile = MadeAttempt(
        uid=HOSTILE,
        namespace=HOSTILE,
        name=HOSTILE,
        result=HOSTILE,
        message=HOSTILE,
        nominated=HOSTILE,
        refusals=[No(plugin=HOSTILE, reason=HOSTILE, nodes=[HOSTILE], status=HOSTILE)],
        attributes={HOSTILE: HOSTILE, "scheduler.profile": HOSTILE},
    )
    error = MadeAttempt(uid="e" + HOSTILE, result="Error", bind_error=HOSTILE, node=HOSTILE)
    span = encode_span(
        trace_id=hostile.trace_id,
        span_id=b"\xff" * 8,
        name=HOSTILE,
        start=START,
        end=START + 5,
        trace_state=HOSTILE,
        status=Status(2, HOSTILE),
        attributes={HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]},
        events=[Event(START, HOSTILE, {HOSTILE: HOSTILE})],
        links=[Link(b"t" * 16, b"s" * 8, {"podtrail.link.type": HOSTILE, HOSTILE: HOSTILE}, HOSTILE)],
    )
    resource = resource_header({"service.name": HOSTILE, HOSTILE: HOSTILE}, HOSTILE)
    group = Group(resource, scope_header(HOSTILE, HOSTILE, HOSTILE), hostile.trace_id, frame([span]), 1)
    kept = hostile.batch("sampled", HOSTILE, HOSTILE)
    kept.verdicts[0].votes = {HOSTILE: "sampled"}
    batches = [
        kept,
        error.batch("not_sampled", "", HOSTILE),
        Batch([group], START),
    ]
    return batches, hostile.trace_id


async def test_hostile_text_in_every_field_is_shown_and_has_no_power(viewing: Viewing) -> None:
    batches, trace_id = hostile_everywhere()
    async with viewing(*batches) as (viewer, browser):
        keys = [pod.key for pod in viewer.stories.pods()]
        viewer.stories.note_gated("g", HOSTILE, HOSTILE, [HOSTILE])
        trace = f"/traces/{trace_id.hex()}"
        pods = [str(pod_path(key)) for key in (*keys, "g")]
        decision = f"/decisions/{trace_id.hex()}"
        for path in ("/", "/?state=all", *pods, trace, trace + "?span=" + "ff" * 8, "/policies", decision):
            async with browser.get(URL(path, encoded=True)) as answer:
                assert answer.status == 200, path
                page = await answer.text()
            seen = Seen(page)
            assert "xss" not in seen.tags
            assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
            assert "\\x1b" in page
            assert all(c.isprintable() or c == "\n" for c in page)
            assert "{{7*7}}" in page
            assert all(re.match(r"[/#?]", address) for address in seen.addresses)


async def test_a_hostile_query_comes_back_as_text(viewing: Viewing) -> None:
    async with viewing(no_room().batch()) as (_, browser):
        query = {"q": HOSTILE, "state": HOSTILE}
        async with browser.get("/", params=query) as answer:
            seen = Seen(await answer.text())
        assert "xss" not in seen.tags
        assert "onload" not in seen.attributes


async def test_every_answer_carries_the_headers_that_keep_a_browser_in_bounds(viewing: Viewing) -> None:
    async with viewing() as (_, browser):
        for path in (
            "/",
            "/nowhere",
            "/policies",
            "/api/v1/why",
            "/api/v1/pods",
            "/static/podtrail.js",
            "/?sort=x",
            "/api/v1/live",
            "/api/v1/tap",
            "/api/v1/record?seconds=1",
        ):
            async with browser.get(path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                assert answer.headers["Cache-Control"] == "no-store"
                assert "Set-Cookie" not in answer.headers
                assert "Access-Control-Allow-Origin" not in answer.headers
                assert answer.headers["Server"] == "podtrail"


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost", True),
        ("localhost:8080", True),
        ("LOCALHOST.:1", True),
        ("127.0.0.1:15927", True),
        ("[::1]:15927", True),
        ("10.1.2.3", True),
        ("podtrail.example:80", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("::1", False),
        ("", False),
        ("[localhost]", False),
        ("localhost:65536", False),
        ("127.0.0.1:99999999", False),
        ("localhost:\u0661", False),
    ],
)
def test_only_hosts_that_are_this_one_beyond_doubt_are_served(host: str, allowed: bool) -> None:
    assert is_allowed_host(host, ["Podtrail.example"]) is allowed


async def test_an_address_that_is_none_is_refused_on_every_page(viewing: Viewing) -> None:
    async with viewing(no_room().batch()) as (viewer, browser):
        (pod,) = viewer.stories.pods()
        for path in ("/", "/incident", "/incident.md", f"{pod_path(pod.key)}/report.html"):
            async with browser.get(path, headers={"Host": "localhost:65536"}) as answer:
                assert answer.status == 403, path


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {"Host": "evil.example"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
        ("GET", {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("GET", {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200),
        ("GET", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
        ("HEAD", {}, 200),
        ("POST", {}, 405),
        ("OPTIONS", {}, 405),
    ],
)
async def test_others_are_refused(viewing: Viewing, method: str, headers: dict[str, str], status: int) -> None:
    async with viewing() as (_, browser), browser.request(method, "/", headers=headers) as answer:
        assert answer.status == status


def test_a_page_that_others_can_reach_must_know_its_names() -> None:
    with pytest.raises(ValidationError, match="allowed_hosts"):
        Config(endpoint="0.0.0.0:15927")
    reachable = Config(endpoint="0.0.0.0:15927", allowed_hosts=("podtrail.example",), allow_unauthenticated=True)
    assert reachable.warnings() == [
        (("endpoint",), "there is neither TLS nor a login: whoever reaches it sees every Pod")
    ]
    assert Config().warnings() == []


@pytest.mark.parametrize(
    ("key", "words"),
    [("endpoint", "whoever reaches it sees every Pod"), ("otlp_endpoint", "whoever reaches it may send")],
)
def test_what_others_can_reach_needs_words_that_it_is_meant_so(key: str, words: str) -> None:
    with pytest.raises(ValidationError, match=f"can be reached from other machines, and {words}; demand credentials"):
        Config.model_validate({key: "192.0.2.1:15927", "allowed_hosts": ["podtrail.example"]})


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: str(template.name))
def test_templates_mark_nothing_as_safe_and_hold_no_code(template: object) -> None:
    text = template.read_text()  # type: ignore[attr-defined] # a Traversable
    assert not re.search(r"\|\s*safe\b|Markup|autoescape|\son[a-z]+=|\sstyle=|<style", text)
    assert re.findall(r"<script[^>]*>[^<]", text) == []
    assert not re.search(r"=\{\{", text), "an attribute without quotes"
    assert not re.search(r"https?://", text)
