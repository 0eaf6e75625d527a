"""All stories of the matrix: which lives are ended how, in which settings; and the table of what came of them."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.reliability.crash.account import Account
from tests.reliability.crash.lives import Zygote
from tests.reliability.crash.settings import CONSUMERS, MATRIX, Setting
from tests.reliability.crash.story import Kill, Manner, Plan, Story, Told

NOTED_LATE = 3 * CONSUMERS
"""Batches that were answered and whose end may not be on disk yet: it is written together, while others are sent."""
LIVES = 7
"""That are ended in one story, the last one aside."""
AT_RANDOM: Sequence[Manner] = ("load", "load", "load", "load", "start", "start", "reload", "stop")
_PHASES = {"write": ("before", "middle", "after")}
_MOST: dict[Manner, dict[str, int]] = {
    "load": {"write": 12, "sync": 12, "create": 2, "rename": 2, "unlink": 1},
    "start": {"write": 8, "sync": 6, "create": 4, "rename": 3, "unlink": 4, "truncate": 2},
    "reload": {"write": 10, "sync": 6, "create": 2, "rename": 2, "unlink": 2},
    "stop": {"write": 10, "sync": 6, "create": 2, "rename": 2, "unlink": 2},
}
"""How many of the operations of each kind a life is ended at, one after the other."""


def operations() -> list[Kill]:
    """Return the kills at operations on the store: before, after and in the middle of each."""
    return [
        Kill(manner, operation, nth, phase)
        for manner, kinds in _MOST.items()
        for operation, most in kinds.items()
        for nth in range(1, most + 1)
        for phase in _PHASES.get(operation, ("before", "after"))
    ]


def plans(kills: int, seed: int, settings: Sequence[Setting] = MATRIX) -> list[Plan]:
    """Return stories with at least so many kills, half of them at operations and no operation twice before all."""
    rng = random.Random(seed)
    deck = _dealt(rng)
    made = []
    for number in range(-(-kills // LIVES)):
        setting = settings[number % len(settings)]
        chosen = [_random(rng) if rng.random() < 0.45 else next(deck) for _ in range(LIVES)]
        made.append(Plan(setting, seed * 100_000 + number, chosen, rng.choice((2, 4, 8)), rng.random() < 0.3))
    return made


def _dealt(rng: random.Random) -> Iterator[Kill]:
    while True:
        deck = operations()
        rng.shuffle(deck)
        yield from deck


def _random(rng: random.Random) -> Kill:
    return Kill(rng.choice(AT_RANDOM))


async def tell(plan: Plan, folder: Path, zygote: Zygote) -> Told:
    """Run one story in a folder of its own."""
    return await Story(plan, folder, zygote).run()


def faults(told: Told) -> list[str]:
    """Return what must not be, of one story."""
    found = told.account.faults + told.faults
    setting = told.plan.setting
    if setting.exporter != "file" and told.account.answered_before > NOTED_LATE:
        found.append(f"a batch came again that was answered, and {told.account.answered_before - 1} others after it")
    return found


def table(stories: Sequence[Told]) -> str:
    """Return what came of stories, by setting, and how lives were ended."""
    head = ("runs", "kills", "requests", "acknowledged", "delivered", "decided away", "lost", "duplicates", "at a kill")
    columns: Sequence[Callable[[list[Account]], int]] = (
        len,
        lambda accounts: sum(a.kills for a in accounts),
        lambda accounts: sum(a.requests for a in accounts),
        lambda accounts: sum(a.acknowledged for a in accounts),
        lambda accounts: sum(a.delivered for a in accounts),
        lambda accounts: sum(a.decided_away for a in accounts),
        lambda accounts: sum(a.lost.total() for a in accounts),
        lambda accounts: sum(a.duplicates.total() for a in accounts),
        lambda accounts: max((count for a in accounts for count in a.duplicates.values()), default=0),
    )
    by_name: dict[str, list[Account]] = {}
    for told in stories:
        by_name.setdefault(told.plan.setting.name, []).append(told.account)
    by_name["all"] = list(itertools.chain(*by_name.values()))
    width = max(map(len, by_name))
    lines = [" " * width + "".join(f"{title:>14}" for title in head)]
    for name, accounts in by_name.items():
        lines.append(f"{name:<{width}}" + "".join(f"{column(accounts):>14,}" for column in columns))
    ended: Counter[str] = Counter()
    for told in stories:
        ended += told.ended_by
    lines += ["", "ended:", *(f"{count:>7} {how}" for how, count in sorted(ended.items()))]
    return "\n".join(lines)
