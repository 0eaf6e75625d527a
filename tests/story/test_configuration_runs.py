"""Changes of the scheduler's configuration are known in whatever order attempts come."""

from hypothesis import given
from hypothesis import strategies as st

from podtrail.story.configuration_runs import ConfigurationRuns

ATTEMPTS = [(1, "a"), (3, "a"), (5, "b"), (7, "b"), (9, "a"), (11, "c"), (12, "")]


def noted(attempts: list[tuple[int, str]], cluster: str = "") -> ConfigurationRuns:
    runs = ConfigurationRuns()
    for start, generation in attempts:
        runs.note(cluster, generation, start)
    return runs


def test_a_change_is_at_the_first_attempt_with_the_new_configuration() -> None:
    changes = noted(ATTEMPTS).changes()
    assert [(change.at_unix_nano, change.before, change.after) for change in changes] == [
        (5, "a", "b"),
        (9, "b", "a"),
        (11, "a", "c"),
    ]


@given(st.permutations(ATTEMPTS))
def test_the_order_of_attempts_does_not_matter(attempts: list[tuple[int, str]]) -> None:
    assert [change.after for change in noted(attempts).changes()] == ["b", "a", "c"]


def test_each_cluster_has_a_configuration_of_its_own() -> None:
    runs = noted([(1, "a"), (9, "b")], "east")
    runs.note("west", "c", 5)
    assert [change.cluster for change in runs.changes()] == ["east"]
    assert runs.changes("west") == []


def test_what_is_remembered_is_bounded() -> None:
    runs = noted([(at, "ab"[at % 2]) for at in range(1_000)])
    assert [change.at_unix_nano for change in runs.changes()] == [*range(801, 1_000)]
