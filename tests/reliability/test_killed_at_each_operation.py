"""A store whose process is killed before, in the middle of and after everything that it does to its files, in turn.

Each life goes on with what the one before has left, also with what was left by one that was killed while it mended.
"""

import json
import signal
from pathlib import Path

import pytest

from tests.reliability.crash.interposed import ANY
from tests.reliability.crash.lives import Life, Zygote, zygote

KEEPER = Path(__file__).parent / "crash" / "keeper.py"
LEAST = {"before": 30, "middle": 10, "after": 30}
"""How many operations a life has at least, of those that have this phase."""


def said(life: Life) -> list[dict[str, list[int]]]:
    return [json.loads(line) for line in life.said.splitlines() if line.startswith('{"')]


class Keepers:
    """Lives of the keeper on one folder."""

    def __init__(self, started: Zygote, folder: Path) -> None:
        self._zygote = started
        self._folder = folder
        self._given = 0
        self.kept: set[int] = set()

    async def live(self, nth: int, phase: str) -> Life:
        """Live until the nth operation; see that all was found that was kept before."""
        operation = "write" if phase == "middle" else ANY
        death = {
            "stage": "start",
            "operation": operation,
            "nth": nth,
            "phase": phase,
            "aside": str(self._folder / "aside"),
        }
        arguments = [str(self._folder / "storage"), str(self._given)]
        life = await self._zygote.run(str(KEEPER), arguments, self._folder, death)
        code = await life.end()
        assert code in (0, -signal.SIGKILL), life.said
        assert "Traceback" not in life.said, life.said
        for line in said(life):
            if "found" in line:
                found = set(line["found"])
                assert self.kept <= found, f"lost {sorted(self.kept - found)}"
                assert all(0 <= number < self._given for number in found)
                # What was not acknowledged may have been kept all the same: from now on it stays.
                self.kept = found
            self.kept.update(line.get("kept", ()))
        self._given += 100
        return life


@pytest.mark.parametrize("phase", ["before", "middle", "after"])
async def test_what_was_kept_is_found_whatever_the_store_was_doing_when_it_was_killed(
    phase: str, tmp_path: Path
) -> None:
    (tmp_path / "aside").mkdir()
    async with zygote() as started:
        keepers = Keepers(started, tmp_path)
        await keepers.live(0, "")
        killed = in_order = nth = 0
        while in_order < 3:  # there may be more to do in the next life than there was in this one
            nth += 1
            life = await keepers.live(nth, phase)
            died = await life.end() != 0
            killed += died
            in_order = 0 if died else in_order + 1
        await keepers.live(0, "")
        assert killed >= LEAST[phase]
