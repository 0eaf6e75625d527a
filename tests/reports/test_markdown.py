import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from podtrail.reports.document import (
    DrawnBar,
    ForeignText,
    PodCell,
    ReportCell,
    ReportDocument,
    ReportLines,
    TraceCell,
    heads,
    table,
)
from podtrail.reports.markdown import code, escaped, fenced, to_markdown
from podtrail.story import visible
from podtrail.story.lines import line

FOREIGN = st.text(alphabet=st.characters() | st.sampled_from("`|<>@#\\\n* "), max_size=40)


def document(word: str) -> ReportDocument:
    columns = heads("What", ForeignText(word), "Drawn", "Pod", "Trace")
    row: list[ReportCell] = [ForeignText(word), "own", DrawnBar(0, 10), PodCell(word, word), TraceCell(b"\xab" * 16)]
    return ReportDocument(
        kind="Pod",
        title=PodCell(word, word),
        lead=word,
        facts=[("uid", ForeignText(word))],
        parts=[ReportLines("Why", [line(word)]), *table("Table", columns, [row], ForeignText(word))],
        notes=["a note"],
    )


def test_a_document_as_markdown() -> None:
    assert to_markdown(document("web")).splitlines() == [
        "# Pod `web`",
        "",
        "```text",
        "web",
        "```",
        "",
        "- uid: `web`",
        "",
        "## Why",
        "",
        "```text",
        "web",
        "```",
        "",
        "## Table",
        "",
        "| What | `web` | Pod | Trace |",
        "|---|---|---|---|",
        f"| `web` | own | `web` | `{'ab' * 16}` |",
        "",
        "`web`",
        "",
        "- a note",
    ]


@given(FOREIGN)
def test_a_code_span_has_no_fence_of_its_own_within(text: str) -> None:
    span = code(text, in_table=True)
    if span == "-":
        return
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert span.endswith(fence[0])
    assert fence[0] not in re.findall("`+", inner)
    assert not inner.startswith("`")
    assert not inner.endswith("`")
    assert "|" not in re.sub(r"\\.", "", inner)


@given(FOREIGN)
def test_a_block_ends_where_it_should(text: str) -> None:
    first, *inner, last = fenced([text])
    assert len(inner) == 1
    assert "`" * len(last) not in inner[0]
    assert first == f"{last}text"


@given(FOREIGN)
def test_every_text_leaves_the_lines_of_a_document_as_they_are(word: str) -> None:
    text = to_markdown(document(word))
    assert all(c.isprintable() or c == "\n" for c in text)
    lines = text.splitlines()
    outside = [one for at, one in enumerate(lines) if not lines[at - 1].endswith("`text")]
    assert [one for one in outside if one.startswith("#")][1:] == ["## Why", "## Table"]
    row = next(one for one in lines if "| own |" in one)
    assert re.sub(r"\\.", "", row).count("|") == 5


def test_own_words_are_no_markup() -> None:
    assert escaped("a|b <c> *d* [e](f)") == r"a\|b \<c\> \*d\* \[e\](f)"


@given(FOREIGN)
def test_a_reader_of_markdown_sees_no_markup_in_what_comes_from_elsewhere(word: str) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(to_markdown(document(word)))
    inner = [below for token in tokens for below in token.children or ()]
    assert {token.type for token in inner} <= {"text", "code_inline"}
    assert not [token.type for token in tokens if token.type.startswith("html")]
    shown = visible(word) if word.strip() else "-"
    cells = [token for at, token in enumerate(tokens) if tokens[at - 1].type in ("td_open", "th_open")]
    assert len(cells) == 8
    code_spans = [below.content for cell in cells for below in cell.children or () if below.type == "code_inline"]
    if shown.strip("` -") and "\\|" not in shown:
        assert code_spans.count(shown.strip() if shown[0] == shown[-1] == " " else shown) >= 1
