"""The report as one page: whole by itself, safe whatever stands in spans, the same for the same input."""

import re
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from podtrail.backtest import page as pages
from podtrail.cli import main
from podtrail.testing.attempts import START, MadeAttempt, no_room

SECOND = 1_000_000_000
FAILED = "{name: failed, type: scheduling_result, scheduling_result: {results: [Unschedulable, Error]}}"
ALL = "{name: all, type: always_sample}"
EVIL = "</td><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u202e\x1b{{ 7*7 }}"
TEMPLATES = files("podtrail.backtest") / "templates"
KIT = files("podtrail.pages") / "templates"
STYLES = ((KIT, "common.css"), (TEMPLATES, "report.css"))

Configured = Callable[..., str]
Recorded = Callable[..., Path]


def attempts(count: int, **changes: object) -> list[MadeAttempt]:
    make: list[Callable[..., MadeAttempt]] = [no_room, MadeAttempt]
    return [
        make[at % 3 > 0](
            uid=f"{at // 3:036}", name=f"web-{at // 3}", number=at % 3 + 1, start=START + at * SECOND, **changes
        )
        for at in range(count)
    ]


@pytest.fixture
def page(recorded: Recorded, configured: Configured, tmp_path: Path) -> Callable[..., str]:
    """Write the page of a comparison of two configurations over made attempts."""

    def write(made: list[MadeAttempt], *arguments: str) -> str:
        sides = ["--baseline", configured(ALL, name="old"), "--candidate", configured(FAILED, name="new")]
        html = tmp_path / "report.html"
        done = CliRunner().invoke(main, ["backtest", *sides, str(recorded(made)), "--html", str(html), *arguments])
        assert done.exit_code in (0, 1), done.output
        return html.read_text(encoding="utf-8")

    return write


class Elements(HTMLParser):
    """All elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_only_the_one_style_and_script_may_act_and_nothing_is_loaded(page: Callable[..., str]) -> None:
    text = page(attempts(9))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    for tag, directive in {"style": "style-src", "script": "script-src"}.items():
        (inline,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = b64encode(sha256(inline.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    for tag, attributes in Elements(text).found:
        assert tag not in ("img", "link", "iframe", "object", "use", "base", "form")
        assert not {"src", "style", "srcset", "action"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "://" not in text


def test_each_table_has_a_caption_and_heads_with_a_scope(page: Callable[..., str]) -> None:
    text = page(attempts(9), "--budget", "1GB/day")
    found = Elements(text).found
    tags = [tag for tag, _ in found]
    assert tags.count("table") == tags.count("caption") >= 6
    assert all(attributes.get("scope") for tag, attributes in found if tag == "th")
    assert all(attributes.get("aria-hidden") == "true" for tag, attributes in found if tag == "svg")
    ids = [attributes["id"] for _, attributes in found if "id" in attributes]
    assert len(ids) == len(set(ids))
    goals = {(attributes.get("href") or "")[1:] for tag, attributes in found if tag == "a"}
    assert goals <= set(ids)


def test_examples_lead_to_the_story_of_their_pod(page: Callable[..., str]) -> None:
    text = page(attempts(9))
    assert '<a href="#pod-1"><bdi>default/web-0</bdi></a>' in text
    assert '<tr id="pod-1"><th scope="row"><bdi>default/web-0</bdi>' in text


def test_the_same_input_gives_the_same_bytes(page: Callable[..., str]) -> None:
    assert page(attempts(12)) == page(attempts(12))


def test_what_stands_in_spans_is_shown_and_does_nothing(page: Callable[..., str]) -> None:
    attributes: dict[str, object] = {"scheduler.profile": EVIL, EVIL: EVIL}
    clean, hostile = page(attempts(6)), page(attempts(6, namespace=EVIL, attributes=attributes, message=EVIL))
    assert "&lt;script&gt;alert(1)" in hostile
    assert "\\u202e\\x1b{{ 7*7 }}" in hostile
    assert not {"\u202e", "\x1b"} & set(hostile)
    counts = [
        [tag for tag, _ in Elements(text).found if tag in ("script", "img", "style")] for text in (clean, hostile)
    ]
    assert counts[0] == counts[1] == ["style", "script"]


def test_a_page_that_would_be_too_large_has_fewer_examples(
    page: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = page(attempts(90))
    monkeypatch.setattr(pages, "LARGEST", len(whole) // 2)
    less = page(attempts(90))
    assert len(less.encode()) <= len(whole) // 2
    assert 0 < less.count("<details>") < whole.count("<details>")


def test_templates_mark_nothing_as_safe() -> None:
    for one in (*TEMPLATES.iterdir(), *KIT.iterdir()):
        text = one.read_text(encoding="utf-8")
        assert not re.search(r"\|\s*safe\b|Markup|autoescape|innerHTML|\bon\w+=|style=|https?:", text), one.name


def test_colours_can_be_read_in_light_and_dark() -> None:
    shared, own = (
        [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)]
        for style in ((room / name).read_text(encoding="utf-8") for room, name in STYLES)
    )
    printed = own.pop()
    schemes = [*({**common, **report} for common, report in zip(shared, own, strict=True)), printed]
    for colours in schemes:
        for ink in ("text", "dim", "link", "red", "green"):
            for surface in ("page", "card"):
                assert contrast(colours[ink], colours[surface]) >= 4.5, (ink, surface)
        for bar in ("before", "after"):
            assert contrast(colours[bar], colours["card"]) >= 3, bar
    assert len(schemes) == 3


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours after WCAG 2."""
    lights = sorted(luminance(colour) + 0.05 for colour in (first, second))
    return lights[1] / lights[0]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
