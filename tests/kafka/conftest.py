"""What holds for all tests on brokers."""

import pytest
from podtrail_receivers.kafka import complaints, consumer_thread, membership


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leaves a group gets all the time it takes, and a complaint is made once however long a test takes.

    What a busy machine has no time for is given up in production; tests say of themselves where they mean that.
    """
    for name in ("_DELIVERING_SECONDS", "_KEEPING_SECONDS"):
        monkeypatch.setattr(membership, name, 60.0)
    monkeypatch.setattr(consumer_thread, "_LEAVING_SECONDS", 150.0)
    monkeypatch.setattr(complaints, "_SILENCE_SECONDS", 3600.0)
