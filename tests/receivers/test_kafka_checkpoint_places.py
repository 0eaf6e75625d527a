"""Where a checkpoint is, as a commit says it: somebody else may have committed anything."""

import pytest

pytest.importorskip("confluent_kafka")

from podtrail_receivers.kafka.checkpoint_topic import Pointer


def test_a_place_is_read_as_it_was_written() -> None:
    place = Pointer(partition=3, first=10, last=12, chunks=2, slot=1, checksum=0xCAFE)
    assert Pointer.parse(str(place)) == place


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "0.0.0.1.0",
        "0.0.0.1.0.0.0",
        "x.0.0.1.0.0",
        "-1.0.0.1.0.0",
        "0.-1.0.1.0.0",
        "0.1.0.1.0.0",
        "0.0.ffffffffffffffffff.1.0.0",
        "0.0.0.fffffff.0.0",
        "0.0.0.0.0.0",
        "0.0.0.1.3.0",
    ],
)
def test_a_place_that_cant_be_is_none(forged: str) -> None:
    assert Pointer.parse(forged) is None
