"""Attempts that were not kept, in full: read once, anew where something has changed."""

import pytest

from podtrail.story import Library
from podtrail.story.full_attempts import DecidedAttempt
from podtrail.testing.attempts import MS, MadeAttempt, No, no_room

UID = no_room().uid


def dropped(number: int) -> MadeAttempt:
    refusals = [No(plugin=f"Plugin{number}", reason="no", nodes=["n"])]
    return MadeAttempt(uid=UID, number=number, start=number * 1000 * MS, result="Unschedulable", refusals=refusals)


@pytest.fixture
def library() -> Library:
    library = Library()
    for number in range(1, 5):
        library.decide("traces", dropped(number).batch("not_sampled", ""))
    return library


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The numbers of the attempts that are read, as they are."""
    numbers: list[int | None] = []
    read = DecidedAttempt.read

    def count(one: DecidedAttempt) -> object:
        numbers.append(one.attempt.number)
        return read(one)

    monkeypatch.setattr(DecidedAttempt, "read", count)
    return numbers


def plugins(library: Library) -> list[str]:
    pod = library.pod(UID)
    assert pod
    return [no.plugin for one in pod.attempts for no in one.why.rejections]


def test_a_pod_that_is_asked_for_again_is_not_read_again(library: Library, reads: list[int | None]) -> None:
    told = library.pod(UID)
    assert reads == [1, 2, 3, 4]
    assert library.pod(UID) == told
    assert plugins(library) == ["Plugin1", "Plugin2", "Plugin3", "Plugin4"]
    library.decide("traces", dropped(5).batch("not_sampled", ""))
    assert plugins(library)[-1] == "Plugin5"
    assert reads == [1, 2, 3, 4, 5]
    library.decide("traces", MadeAttempt(uid="other", result="Unschedulable").batch("not_sampled", ""))
    library.pod("other")
    library.pod(UID)
    assert len(reads) == 5 + 1 + 5


@pytest.mark.parametrize("asked", [UID, "default/web-0", "web-0"])
def test_what_was_read_ahead_is_not_read_again(library: Library, reads: list[int | None], asked: str) -> None:
    unread = library.unread(asked)
    library.note_read([(one, one.read()) for one in unread])
    assert library.unread(asked) == []
    assert plugins(library) == ["Plugin1", "Plugin2", "Plugin3", "Plugin4"]
    assert reads == [1, 2, 3, 4]


def test_nothing_is_unread_of_who_is_not_held_or_whose_spans_are(library: Library) -> None:
    assert library.unread("nobody") == library.unread("default/nobody") == library.unread("") == []
    kept = MadeAttempt(uid="kept").batch()
    library.decide("traces", kept)
    library.keep(kept.groups, 1)
    assert library.unread("kept") == []
