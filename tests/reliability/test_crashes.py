"""podtrail killed at any moment: what it has acknowledged comes all the same.

`./dev crashes` runs hundreds of kills more, and prints the table.
"""

import asyncio
from pathlib import Path

from tests.reliability.crash.lives import zygote
from tests.reliability.crash.matrix import faults, plans, tell
from tests.reliability.crash.settings import MATRIX


def test_without_storage_the_account_shows_what_kills_have_cost(tmp_path: Path) -> None:
    async def story() -> None:
        plan = plans(7, seed=1, settings=[setting for setting in MATRIX if setting.sampled])[0]
        async with zygote() as started:
            told = await tell(plan._replace(setting=plan.setting.without_storage()), tmp_path / "story", started)
        assert told.account.lost.total()
        assert faults(told) == [f"{told.account.lost.total()} spans lost"]

    asyncio.run(story())
