"""podtrail killed at any moment: what it has acknowledged comes all the same, and as it would have come without.

`./dev crashes` runs hundreds of kills more, and prints the table.
"""

import asyncio
from pathlib import Path

import pytest

from tests.reliability.crash.lives import zygote
from tests.reliability.crash.matrix import faults, plans, tell
from tests.reliability.crash.settings import MATRIX
from tests.reliability.crash.story import Plan, Told
from tests.sizes import large

SEED = 1
SHORT = [
    *plans(
        large(2, 6) * 7,
        SEED,
        [setting for setting in MATRIX if setting.storage == "durable" and setting.load != "plain"],
    ),
    *plans(7, SEED, [setting for setting in MATRIX if setting.storage == "queue"]),
    *plans(7, SEED, [setting for setting in MATRIX if setting.storage == "both"]),
]


def story(plan: Plan, folder: Path) -> Told:
    async def main() -> Told:
        async with zygote() as started:
            return await tell(plan, folder, started)

    return asyncio.run(main())


@pytest.mark.parametrize("plan", SHORT, ids=lambda plan: plan.setting.name)
def test_nothing_acknowledged_is_lost(plan: Plan, tmp_path: Path) -> None:
    told = story(plan, tmp_path / "story")
    assert told.account.acknowledged
    assert not faults(told), f"again: {plan}"


def test_without_storage_the_account_shows_what_kills_have_cost(tmp_path: Path) -> None:
    plan = plans(7, SEED, [setting for setting in MATRIX if setting.sampled])[0]
    told = story(plan._replace(setting=plan.setting.without_storage()), tmp_path / "story")
    assert told.account.lost.total()
    assert faults(told) == [f"{told.account.lost.total()} spans lost"]
