from podtrail.otlp import Link
from podtrail.story import AttemptComparison, AttemptStory, Library, plain
from podtrail.story.attempt_comparison import compare_attempts
from podtrail.testing.attempts import START, MadeAttempt, No, no_room

SECOND = 1_000_000_000
KEY = MadeAttempt().uid
FULLER = [
    No(plugin="NodeAffinity", reason="no match", nodes=["node-1", "node-2"]),
    No(plugin="NodeResourcesFit", reason="Insufficient memory", nodes=["tight0"]),
]
EMPTIER = [
    No(plugin="NodeAffinity", reason="no match", nodes=["node-1"]),
    No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["tight0", "node-2"]),
]


def held(*attempts: MadeAttempt) -> tuple[Library, tuple[AttemptStory, ...]]:
    library = Library(max_decisions_mib=1)
    for attempt in attempts:
        batch = attempt.batch()
        library.decide("traces", batch)
        library.keep(batch.groups, batch.arrived)
    pod = library.pod(KEY)
    assert pod is not None
    return library, pod.attempts


def compared(*attempts: MadeAttempt) -> AttemptComparison:
    library, (one, other) = held(*attempts)
    return library.compare(one, other)


def test_who_said_no_to_how_many_nodes_stands_side_by_side() -> None:
    told = compared(no_room(number=1, refusals=FULLER), no_room(number=2, start=START + SECOND, refusals=EMPTIER))
    assert [(no.plugin, no.one, no.other) for no in told.refusals] == [
        ("NodeAffinity", 2, 1),
        ("NodeResourcesFit", 1, 2),
    ]
    assert told.refusals[1].reasons == ("Insufficient memory", "Insufficient cpu")


def test_only_nodes_that_somebody_else_refused_changed() -> None:
    told = compared(no_room(number=1, refusals=FULLER), no_room(number=2, start=START + SECOND, refusals=EMPTIER))
    assert told.nodes == (("node-2", "NodeAffinity", "NodeResourcesFit"),)
    assert not told.names_cut


def test_names_that_are_cut_are_said_to_be() -> None:
    assert compared(no_room(number=1), no_room(number=2, start=START + SECOND)).names_cut


def test_the_time_of_each_plugin_stands_side_by_side_the_longest_first() -> None:
    told = compared(no_room(number=1, refusals=FULLER), MadeAttempt(number=2, start=START + SECOND))
    assert {(time.point, time.plugin) for time in told.times} >= {("filter", "NodeAffinity")}
    most = [time.most for time in told.times]
    assert most == sorted(most, reverse=True)
    assert told.untimed == ()


def test_an_attempt_whose_spans_are_not_here_has_no_times() -> None:
    _, (one, other) = held(no_room(number=1), no_room(number=2, start=START + SECOND))
    told = compare_attempts(one, other, (None, {("filter", "NodeAffinity"): 7}))
    assert told.times == (("filter", "NodeAffinity", None, 7),)
    assert told.untimed == (1,)


def test_the_configuration_that_changed_between_them_is_told() -> None:
    made = Link(bytes(range(16)), bytes(range(8)), {"podtrail.link.type": "configuration"})
    library, attempts = held(
        no_room(number=1, attributes={"scheduler.config.generation": "a1"}),
        no_room(number=2, start=START + SECOND, attributes={"scheduler.config.generation": "a1"}),
        no_room(number=3, start=START + 2 * SECOND, attributes={"scheduler.config.generation": "b2"}, links=[made]),
    )
    pod = library.pod(KEY)
    assert pod is not None
    assert library.changes_between(pod, attempts[0], attempts[1]) == ()
    [change] = library.changes_between(pod, attempts[2], attempts[0])
    assert plain(change).startswith("The scheduler's configuration changed between attempt 2 and 3 (a1 → b2)")
    facts = {fact.what: (fact.one, fact.other) for fact in library.compare(attempts[0], attempts[2]).facts}
    assert facts["configuration"] == ("a1", "b2")
