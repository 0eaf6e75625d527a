"""Traces stay where they began, for their grace, whatever becomes of the ring."""

import itertools
import random
from zlib import crc32

from podtrail_exporters.load_balancing.balancer import Balancer
from podtrail_exporters.load_balancing.ring import Ring

from tests.sizes import large

KEYS = [crc32(number.to_bytes(8, "big")) for number in range(2_000)]
FIVE = [f"10.0.0.{number}:4317" for number in range(5)]
SIX = [*FIVE, "10.0.0.9:4317"]


def balancer(grace: float = 60.0, most: int = 100_000) -> Balancer:
    made = Balancer(grace, most)
    made.resolve(FIVE, 0.0)
    return made


def test_nobody_is_assigned_to_where_there_is_no_backend() -> None:
    assert Balancer(60, 100).assign(KEYS, 0) == ()


def test_new_traces_follow_a_changed_ring_at_once_and_those_under_way_stay() -> None:
    here = balancer()
    began = dict(zip(KEYS[:1000], here.assign(KEYS[:1000], 1), strict=True))
    here.resolve(SIX, 2)
    for now in (2, 20, 40, 60.9):
        assert dict(zip(KEYS[:1000], here.assign(KEYS[:1000], now), strict=True)) == began
    ring = Ring(SIX)
    assert list(here.assign(KEYS[1000:], 3)) == [ring.backend(key) for key in KEYS[1000:]]
    assert any(ring.backend(key) != at for key, at in began.items())


def test_when_the_grace_is_over_all_follow_the_ring_and_nothing_is_left_over() -> None:
    here = balancer()
    here.assign(KEYS, 1)
    here.resolve(SIX, 2)
    here.assign(KEYS, 3)
    ring = Ring(SIX)
    assert list(here.assign(KEYS, 61)) == [ring.backend(key) for key in KEYS]
    here.assign(KEYS[:1], 200)
    assert here.remembered() == 1


def test_without_a_grace_all_follow_the_ring_at_once() -> None:
    here = balancer(grace=0)
    here.assign(KEYS, 1)
    here.resolve(SIX, 2)
    ring = Ring(SIX)
    assert list(here.assign(KEYS, 2)) == [ring.backend(key) for key in KEYS]


def test_a_removed_backend_keeps_what_is_under_way_until_it_fails() -> None:
    here = balancer()
    began = here.assign(KEYS, 1)
    here.resolve(FIVE[1:], 2)
    assert here.assign(KEYS, 3) == began
    assert FIVE[0] in here.kept(3)
    here.lose(FIVE[0], 4)
    ring = Ring(FIVE[1:])
    after = here.assign(KEYS, 5)
    assert list(after) == [ring.backend(key) if at == FIVE[0] else at for key, at in zip(KEYS, began, strict=True)]
    assert FIVE[0] not in here.kept(5)
    assert here.down == set()


def test_a_removed_backend_is_let_go_of_after_the_grace() -> None:
    here = balancer()
    here.assign(KEYS, 1)
    here.resolve(FIVE[1:], 2)
    assert FIVE[0] in here.kept(61.9)
    assert FIVE[0] not in here.kept(62)
    assert FIVE[0] not in here.assign(KEYS, 62)


def test_who_moved_on_from_a_backend_that_was_down_stays_when_it_is_back() -> None:
    here = balancer()
    began = here.assign(KEYS[:1000], 1)
    here.lose(FIVE[2], 2)
    moved = here.assign(KEYS[:1000], 3)
    assert FIVE[2] not in moved
    here.regain(FIVE[2], 4)
    assert here.assign(KEYS[:1000], 5) == moved
    ring = Ring(FIVE)
    assert list(here.assign(KEYS[1000:], 5)) == [ring.backend(key) for key in KEYS[1000:]]
    assert list(here.assign(KEYS[:1000], 70)) == list(began)


def test_with_all_backends_down_each_key_goes_to_its_own() -> None:
    here = balancer()
    for each in FIVE:
        here.lose(each, 1)
    ring = Ring(FIVE)
    assert list(here.assign(KEYS, 2)) == [ring.backend(key) for key in KEYS]


def test_memory_is_bounded_and_what_is_forgotten_early_is_counted() -> None:
    here = balancer(most=400)
    for at in range(0, 2000, 50):
        here.assign(KEYS[at : at + 50], 1)
        assert here.remembered() <= 450
    assert here.forgotten >= 1500
    here.resolve(SIX, 2)
    ring, before = Ring(SIX), Ring(FIVE)
    assert list(here.assign(KEYS[-100:], 3)) == [before.backend(key) for key in KEYS[-100:]]
    assert list(here.assign(KEYS[:500], 3)) == [ring.backend(key) for key in KEYS[:500]]


def test_rings_that_change_all_the_time_take_bounded_memory() -> None:
    here = balancer()
    for number in range(100):
        here.assign(KEYS[number : number + 3], number / 100)
        here.resolve(FIVE if number % 2 else SIX, number / 100)
    assert len(here._slices) <= 34
    assert here.forgotten > 0


def test_no_trace_is_parted_while_backends_come_go_fall_and_rise() -> None:
    """Traces of 50 s, a grace of 60: each moves only from who is down or gone."""
    for seed in range(large(5, 200)):
        chance = random.Random(seed)
        here, now, numbers = balancer(grace=60.0), 0.0, itertools.count()
        resolved, down = set(FIVE), set[str]()
        living: dict[int, tuple[float, str]] = {}
        for _ in range(200):
            now += chance.random() * 5
            backend = chance.choice(SIX)
            match chance.randrange(6):
                case 0 if len(resolved - down - {backend}) > 1:
                    resolved ^= {backend}
                    down &= resolved
                    here.resolve(resolved, now)
                case 1 if backend in resolved and len(resolved - down) > 1:
                    down.add(backend)
                    here.lose(backend, now)
                case 2:
                    down.discard(backend)
                    here.regain(backend, now)
            living = {key: began for key, began in living.items() if now < began[0] + 50}
            keys = [*living, *(crc32(next(numbers).to_bytes(8, "big")) for _ in range(20))]
            for key, chosen in zip(keys, here.assign(keys, now), strict=True):
                began, before = living.get(key, (now, chosen))
                assert chosen not in down
                assert chosen == before or before in down or before not in resolved
                living[key] = began, chosen
