"""Power loss with `fsync: false`: what the system had not written is gone, what it had is used."""

import random

import pytest

from podtrail.storage import Position
from tests.storage.keeping import FOLDER, Keeper, found_by
from tests.storage.power_loss import PowerLossDisk


def frame(disk: PowerLossDisk, position: Position) -> bytes:
    """Return the bytes that stand at a position; fewer or none where the file is cut off or missing."""
    inode = disk.names_now.get(FOLDER / f"{position.segment:08}.otlp")
    content = inode.content if inode else b""
    size = int.from_bytes(content[position.offset : position.offset + 4], "big")
    return bytes(content[position.offset : position.offset + 4 + size])


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
async def test_power_loss_without_fsync_costs_what_was_not_written_and_nothing_else(share: float) -> None:
    lost = 0
    for seed in range(20):
        disk = PowerLossDisk()
        keeper = Keeper(disk, fsync=False)
        await keeper.keep()
        left = disk.after_power_loss(random.Random(seed), share)
        whole = {at: frame(disk, position) for at, position in keeper.acknowledged.items()}
        written = {
            at for at, position in keeper.acknowledged.items() if whole[at] and frame(left, position) == whole[at]
        }
        found = await found_by(keeper, left)
        assert written <= found, f"seed {seed}"
        lost += len(keeper.acknowledged.keys() - found)
    assert bool(lost) is (share < 1)
