from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Batch
from podtrail.story import Stories
from podtrail.testing.attempts import START, MadeAttempt, no_room

S = 10**9
MADE = {
    "no room": lambda uid, number: no_room(uid=uid, number=number, start=START + number * S),
    "bound": lambda uid, number: MadeAttempt(uid=uid, number=number, start=START + number * S),
    "bind refused": lambda uid, number: MadeAttempt(
        uid=uid, number=number, start=START + number * S, result="Error", bind_error="denied: not today"
    ),
}


def told(stories: Stories) -> tuple[object, ...]:
    plugins = {
        plugin: {reason: (count.attempts, count.nodes) for reason, count in reasons.items()}
        for plugin, reasons in stories.refusals.plugins().items()
    }
    return plugins, {name: (dict(node.refused), node.bound) for name, node in stories.refusals.nodes().items()}


def test_plugins_and_nodes_are_told_with_reasons() -> None:
    stories = Stories()
    for number in (1, 2):
        stories.observe(no_room(number=number, start=START + number * S).batch())
    stories.observe(MadeAttempt(uid="bound", node="tight0").batch())
    stories.observe(MADE["bind refused"]("refused", 1).batch())
    plugins, nodes = stories.refusals.plugins(), stories.refusals.nodes()
    affinity = plugins["NodeAffinity"]["no match"]
    assert (affinity.attempts, affinity.nodes) == (2, 62)
    assert plugins["Bind"]["denied: not today"].attempts == 1
    assert nodes["tight0"].refused == {("NodeResourcesFit", "Insufficient cpu"): 2}
    assert (nodes["tight0"].bound, nodes["cp-0"].bound) == (1, 0)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(sorted(MADE)), st.booleans()), max_size=20))
def test_the_sums_are_those_of_the_attempts_held(events: list[tuple[str, str, bool]]) -> None:
    stories = Stories(max_pods=2, max_attempts=3)
    for number, (uid, kind, kept) in enumerate(events, 1):
        attempt = MADE[kind](uid, number)
        stories.observe(attempt.batch() if kept else attempt.batch("not_sampled", ""))
    held = Stories()
    for pod in stories.pods():
        for story in pod.attempts:
            held.refusals.note(None, story)
    assert told(stories) == told(held)


def test_a_pod_that_is_forgotten_leaves_nothing() -> None:
    stories = Stories(max_pods=1)
    stories.observe(no_room().batch())
    stories.observe(Batch([], 0, [MadeAttempt(uid="other", node="n").verdict("not_sampled")]))
    assert set(stories.refusals.plugins()) == set()
    assert set(stories.refusals.nodes()) == {"n"}
