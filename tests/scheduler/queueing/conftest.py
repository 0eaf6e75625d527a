import pytest
from podtrail_scheduler.framework.events import Happening

from tests.scheduler.queueing.bench import NODE_ADDED, START, QueueBench


@pytest.fixture
def make_bench() -> type[QueueBench]:
    return QueueBench


@pytest.fixture
def bench() -> QueueBench:
    return QueueBench()


@pytest.fixture
def node_added() -> Happening:
    """An event that Fit is hopeful about."""
    return NODE_ADDED


@pytest.fixture
def start() -> int:
    """A whole second, unix nanoseconds."""
    return START
