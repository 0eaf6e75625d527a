"""What `--update` writes is so: whatever a case is given and whatever it expected, it passes then."""

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.testing.cases import read_suite, run_case
from podtrail.testing.cases.updating import updated
from tests.sizes import large

HEAD = """\
# A comment.
config:
  processors:
    tail_sampling:
      decision_wait: 1s
      policies:
        - {name: first of its kind, type: new_reason, new_reason: {forget_after: 1m}}
        - {name: 'late, at: last', type: attempts, attempts: {min_attempts: 3}}
    link_stitching:
cases:
"""
GIVEN = st.lists(
    st.builds(
        "{} {} by {} every {}s".format,
        st.integers(1, 3),
        st.sampled_from(["failures", "errors", "successful attempts"]),
        st.sampled_from(["NodeAffinity", "NodeResourcesFit", "Mine on 3 nodes and NodeName"]),
        st.integers(1, 90),
    ),
    min_size=1,
    max_size=3,
).map(", then ".join)
VALUE = st.sampled_from(
    [
        "kept",
        "dropped",
        "kept by first of its kind",
        '"dropped by late, at: last"',
        "kept because attempt 3 of",
        "'dropped because /x/' # quoted",
    ]
)
FULL = st.sampled_from(
    [
        "{decision: kept, number: 3, links: []}",
        "{decision: dropped, by: '', because: \"no: reason\", spans: 1} # in full",
        "{decision: kept, links: [{type: creation, to: trace x}, {resolved: false}]}",
    ]
)


@settings(max_examples=large(30, 100))
@given(GIVEN, st.one_of(st.none(), VALUE), FULL, st.booleans())
def test_an_updated_file_passes_and_is_not_updated_again(
    given: str, value: str | None, full: str, counts: bool
) -> None:
    expect = f"    expect:\n      pod web-0: {value}\n      pod web-0 attempt 1:\n        {full}\n"
    counted = "      kept: 77   # many\n" if counts else ""
    text = f"{HEAD}  - name: a case # why\n    given: ['pod web-0: {given}']\n" + (expect + counted if value else "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "some_test.yaml"
        path.write_text(text, encoding="utf-8")
        suite = read_suite(path, unfinished=True)
        update = updated(text, [run_case(suite, case) for case in suite.cases])
        assert update.left == []
        path.write_text(update.text, encoding="utf-8")
        suite = read_suite(path)
        (result,) = [run_case(suite, case) for case in suite.cases]
        assert [failure.headline for failure in result.failures] == []
        assert updated(update.text, [result]).changes == 0
    assert update.text.startswith(text.partition("    expect:")[0])
    comments = [line.partition(" # ")[2] for line in text.splitlines()]
    assert [line.partition(" # ")[2] for line in update.text.splitlines() if " # " in line] == list(
        filter(None, comments)
    )
