"""Pods stand in the same order whether all of them were put in order or only those that have changed."""

from random import Random

from podtrail.story import Stories
from podtrail.story.pod import urgency
from podtrail.testing.attempts import MadeAttempt, no_room

MS = 1_000_000
START = 10**18


def test_what_changes_comes_and_goes_stands_where_it_would_among_all_put_in_order_anew() -> None:
    random = Random(1)
    stories = Stories(max_pods=120)
    for step in range(600):
        number = random.randrange(200)
        about = {"uid": f"uid-{number}", "name": f"web-{number}", "start": START + step * MS}
        made = no_room(**about) if random.random() < 0.3 else MadeAttempt(**about)  # type: ignore[arg-type]
        stories.observe(made.batch())
        if random.random() < 0.4:
            looked_at = stories.pods()
            assert looked_at == sorted(stories.each(), key=urgency)
    assert len(looked_at) == 120


def test_what_was_returned_stays_as_it_is() -> None:
    stories = Stories()
    for number in range(100):
        stories.observe(MadeAttempt(uid=f"uid-{number}", name=f"web-{number}").batch())
    before = stories.pods()
    told = list(before)
    stories.observe(no_room(uid="one more", name="one-more").batch())
    assert [len(stories.pods()), stories.pods()[0].key] == [101, "one more"]
    assert before == told
