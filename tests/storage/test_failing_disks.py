"""A disk that fails, or a process that dies, at any of the things that a journal does: nothing acknowledged is lost."""

import errno
import random
from contextlib import suppress
from itertools import count

import pytest

from podtrail.storage import StorageError
from tests.sizes import large
from tests.storage.failing_disk import FailingDisk, Manner
from tests.storage.keeping import Keeper, found_by, numbered
from tests.storage.power_loss import PowerLossDisk

_FOR_GOOD = 1 << 40


async def kept(keeper: Keeper) -> None:
    try:
        await keeper.keep()
    except StorageError:
        assert keeper.offered == 0, "it could be opened, and then raised"


@pytest.mark.parametrize("fsync", [True, False], ids=["fsync", "no-fsync"])
@pytest.mark.parametrize("manner", ["nothing", "half", "all"])
async def test_a_process_that_dies_at_any_operation_loses_nothing_acknowledged(manner: Manner, fsync: bool) -> None:
    for nth in count(1):
        disk = FailingDisk(PowerLossDisk(), nth, _FOR_GOOD, manner=manner)
        keeper = Keeper(disk, fsync=fsync)
        await kept(keeper)
        if not disk.failed:
            break
        assert set(keeper.acknowledged) <= await found_by(keeper, disk.disk), f"lost at operation {nth}"
    assert nth > (70 if fsync else 30)


@pytest.mark.parametrize("manner", ["nothing", "half"])
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
async def test_a_disk_that_fails_for_a_while_loses_nothing_and_goes_on(code: int, number: int, manner: Manner) -> None:
    for nth in count(1):
        disk = FailingDisk(PowerLossDisk(), nth, number, code=code, manner=manner)
        keeper = Keeper(disk)
        await kept(keeper)
        if not disk.failed:
            break
        found = await found_by(keeper, disk.disk)
        assert set(keeper.acknowledged) <= found, f"lost at operation {nth}"
        assert keeper.refused <= number, f"refused more often than the disk failed, from operation {nth} on"
        last = max(keeper.acknowledged, default=0)
        assert {number for number in keeper.added if number <= last} <= found, "what was added was never written"
    assert nth > 70


@pytest.mark.parametrize("seed", range(large(4, 100)))
async def test_power_loss_at_any_operation_loses_nothing_that_was_forced_onto_the_disk(seed: int) -> None:
    rng = random.Random(seed)
    for nth in count(1):
        whole = PowerLossDisk()
        disk = FailingDisk(whole, nth, _FOR_GOOD, manner=rng.choice(["nothing", "half", "all"]))
        keeper = Keeper(disk)
        await kept(keeper)
        if not disk.failed:
            break
        left = whole.after_power_loss(rng, rng.choice([0.0, 0.2, 0.5, 0.9, 1.0]))
        assert set(keeper.acknowledged) <= await found_by(keeper, left), f"seed {seed}: lost at operation {nth}"


@pytest.mark.parametrize("seed", range(large(4, 100)))
async def test_a_second_power_loss_while_the_first_is_mended_loses_nothing(seed: int) -> None:
    rng = random.Random(1000 + seed)
    disk = PowerLossDisk()
    keeper = Keeper(disk)
    for life in range(25):
        keeper.disk = FailingDisk(disk, rng.randrange(1, 60), _FOR_GOOD, manner=rng.choice(["nothing", "half", "all"]))
        with suppress(StorageError):  # it could not even be opened
            await keeper.keep()
        disk = disk.after_power_loss(rng, rng.random())
        copy = disk.after_power_loss(rng, 0)
        assert set(keeper.acknowledged) <= await found_by(keeper, copy), f"seed {seed}: lost in life {life}"


@pytest.mark.parametrize("seed", range(12))
async def test_a_failed_fsync_is_never_believed_later(seed: int) -> None:
    """Linux calls pages clean that it could not write: they are gone at a power loss though a later fsync succeeds."""
    rng = random.Random(seed)
    disk = PowerLossDisk()
    keeper = Keeper(FailingDisk(disk, rng.randrange(1, 30), rng.randrange(1, 4), only=("sync",)))
    await kept(keeper)
    assert set(keeper.acknowledged) <= await found_by(keeper, disk.after_power_loss(rng, 0))


async def test_nothing_is_acknowledged_while_the_disk_takes_nothing() -> None:
    disk = FailingDisk(PowerLossDisk(), 1, _FOR_GOOD, code=errno.ENOSPC, only=("write",))
    journal = await Keeper(disk).open()
    with pytest.raises(StorageError, match=r"^can't write to /store: No space left on device$"):
        await journal.commit([numbered(0)])
    assert journal.failing == "can't write to /store: No space left on device"
    journal.add(numbered(1))
    with pytest.raises(StorageError):
        await journal.flush()
    await journal.close()
    journal = await Keeper(disk.disk).open()
    assert not list(journal.entries())
    await journal.close()
