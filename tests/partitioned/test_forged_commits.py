"""What somebody else committed for a group harms nobody: it is told apart, or found damaged."""

import json
from typing import Any

import pytest

from podtrail.component import Commit
from podtrail.partitioned.note import OwnersNote

_NOTE: dict[str, Any] = {"podtrail": 1, "left": [5, 1_700_000_000_000_000_000], "begins": -1}


def test_a_note_is_read_as_it_was_written() -> None:
    note = OwnersNote.read(Commit(1, json.dumps(_NOTE)))
    assert note is not None
    assert tuple(note.left) == (5, 1_700_000_000_000_000_000)
    assert json.loads(note.write()) == _NOTE


@pytest.mark.parametrize("metadata", ["", "x", "7", "[]", "{}", "[" * 4090, '{"a":' * 800, '"podtrail"'])
def test_what_is_no_note_of_ours_is_none(metadata: str) -> None:
    assert OwnersNote.read(Commit(1, metadata)) is None


@pytest.mark.parametrize(
    "forged",
    [
        {"left": [5, 10**3000]},
        {"left": [1 << 63, 0]},
        {"begins": 1 << 62},
        {"marks": [[1 << 63, 0]]},
        {"marks": [[(1 << 63) - 1, 0]]},
        {"left": [5, None]},
        {"undelivered": {"traces": {"otlp": [0, 0, 1]}}},
        {"checkpoint": ["0.0.0.1.0.0", 0, -(10**30)]},
    ],
)
def test_numbers_that_nobody_can_have_written_are_damage(forged: dict[str, Any]) -> None:
    far = {**_NOTE, "left": [5, 1 << 62]} if "begins" in forged else _NOTE
    with pytest.raises(ValueError, match="damaged"):
        OwnersNote.read(Commit(1, json.dumps({**far, **forged})))
