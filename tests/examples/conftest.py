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
import asyncio, sys
from podtrail_extensions.viewer import FACTORY
from podtrail.component import Context
from podtrail.testing.attempts import no_room

async def main():
    config = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
    async with FACTORY.create(config, Context(id="viewer")) as viewer:
        batch = no_room().batch(reason="scheduler.result=Unschedulable")
        batch.verdicts[0].votes = {"failed": "sampled"}
        viewer.observe("traces", batch)
        viewer.library.keep(batch.groups, batch.arrived)
        print(viewer.page, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


@pytest.fixture
def page_of_a_viewer() -> Iterator[str]:
    """The address of a running page that knows of one attempt."""
    with running_page(VIEWER) as running:
        yield running.address
