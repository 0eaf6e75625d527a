"""The matrix of real kube-schedulers as `./dev versions --record` left it: attempts equal their counters."""

import pytest

from tests.reconstruction.versions.facts import DOCUMENT, replaced, table
from tests.reconstruction.versions.matrix import RECORDED, RUNS, VERSIONS, Recording
from tests.reconstruction.versions.verdict import differences

RECORDINGS = {(minor, run.name): Recording(RECORDED, minor, run) for minor in VERSIONS for run in RUNS}


@pytest.mark.parametrize("minor", list(VERSIONS))
@pytest.mark.parametrize("run", [run.name for run in RUNS])
def test_attempts_equal_the_counters_or_what_the_page_predicts(minor: str, run: str) -> None:
    recording = RECORDINGS[minor, run]
    assert sum(recording.counted.values()) > 16
    assert differences(recording) == []


def test_the_table_of_facts_is_that_of_the_recordings() -> None:
    page = DOCUMENT.read_text("utf-8")
    assert replaced(page, table(lambda minor, run: RECORDINGS[minor, run])) == page
