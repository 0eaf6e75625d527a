"""Ports for examples that listen, and a page to ask."""

from collections.abc import Iterator

import pytest

from tests.free_ports import free_ports
from tests.running_page import running_page


@pytest.fixture(name="free_ports")
def some_free_ports() -> list[int]:
    """Some ports that stay free."""
    return free_ports(4)


VIEWER = """
batch = no_room().batch(reason="scheduler.result=Unschedulable")
batch.verdicts[0].votes = {"failed": "sampled"}
viewer.observe("traces", batch)
viewer.library.keep(batch.groups, batch.arrived)
"""


@pytest.fixture
def page_of_a_viewer() -> Iterator[str]:
    """The address of a running page that knows of one attempt."""
    with running_page(VIEWER) as running:
        yield running.address
