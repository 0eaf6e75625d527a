from dataclasses import replace

from podtrail.story import FoldedLinks, LinkStory, SpanFate, fold_links

HELD, LOST = SpanFate(held=True, label="GET", words=""), SpanFate(held=False, label="", words="not received")


def links(kind: str, count: int, fate: SpanFate = HELD) -> list[LinkStory]:
    return [LinkStory("from", b"here", bytes([n] * 16), b"s" * 8, kind, inferred=True, fate=fate) for n in range(count)]


def listed(*some: LinkStory) -> list[str]:
    return [f"{one.type} {len(one.links)}" if isinstance(one, FoldedLinks) else one.type for one in fold_links(some)]


def test_what_tells_the_story_stands_and_what_is_many_is_a_line_behind_it() -> None:
    some = [*links("request", 49), *links("creation", 1), *links("event", 2), *links("binding", 1), *links("status", 1)]
    assert listed(*some) == ["creation", "binding", "status", "request 49", "event 2"]


def test_of_what_tells_the_story_again_and_again_the_first_stand() -> None:
    assert listed(*links("scheduling", 4)) == ["scheduling"] * 4
    assert listed(*links("scheduling", 20), *links("binding", 1)) == [*["scheduling"] * 3, "scheduling 17", "binding"]


def test_links_to_and_from_are_not_folded_together() -> None:
    there = [replace(link, direction="to") for link in links("request", 2)]
    assert listed(*links("request", 3), *there) == ["request 3", "request 2"]


def test_the_first_that_can_be_opened_is_named() -> None:
    [fold] = fold_links([*links("runtime", 2, LOST), *links("runtime", 3)])
    assert isinstance(fold, FoldedLinks)
    assert fold.first is fold.links[2]
    [fold] = fold_links(links("runtime", 2, LOST))
    assert isinstance(fold, FoldedLinks)
    assert fold.first is None
