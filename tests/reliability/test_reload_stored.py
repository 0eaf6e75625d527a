"""SIGHUP with a store: nothing that processors held is lost or sent twice, whatever becomes of the processors."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.crash.sending import Outcome
from tests.reliability.crash.settings import Setting
from tests.reliability.crash.stage import stage

HELD = Setting("grpc", "attempts", "otlp_grpc", "durable", stitching=True)
WINDOW = {"link_stitching": {"reorder_wait": "10m"}}


def pipeline(processors: list[str]) -> dict[str, Any]:
    parts = {"receivers": ["otlp"], "processors": processors, "exporters": ["otlp_grpc"], "durable": "file_storage"}
    return {"pipelines": {"traces": parts}}


@pytest.mark.parametrize("crash", [False, True], ids=["in order", "and killed"])
async def test_what_a_processor_held_that_is_no_longer_configured_comes_once(crash: bool, tmp_path: Path) -> None:
    async with stage(HELD, tmp_path) as here:
        here.changes = {"processors": WINDOW, "service": pipeline(["link_stitching"])}
        life = await here.start()
        requests = here.requests(10)
        assert set(await here.send(life, requests)) == {Outcome.TAKEN}
        assert not here.recorder.ids
        here.changes = {"service": pipeline([])}
        here.configure()
        life.tell(signal.SIGHUP)
        assert await life.says("SIGHUP: reloaded")
        if crash:
            life.tell(signal.SIGKILL)
            await life.end()
            life = await here.start()
        await here.comes({id for request in requests for _, id in request.spans})
        life.tell(signal.SIGTERM)
        assert await life.end() == 0, life.said
        assert "missing" not in life.said
        if not crash:
            assert max(here.times().values()) == 1


async def test_a_renamed_durable_pipeline_and_processor_go_on_at_the_next_start(tmp_path: Path) -> None:
    async with stage(HELD, tmp_path) as here:
        here.changes = {"processors": WINDOW, "service": pipeline(["link_stitching"])}
        life = await here.start()
        requests = here.requests(10)
        assert set(await here.send(life, requests)) == {Outcome.TAKEN}
        life.tell(signal.SIGTERM)
        assert await life.end() == 0, life.said
        renamed = {"traces/renamed": pipeline(["link_stitching/renamed"])["pipelines"]["traces"]}
        here.changes = {
            "processors": {"link_stitching/renamed": WINDOW["link_stitching"]},
            "service": {"pipelines": renamed},
        }
        life = await here.start()
        assert not here.recorder.ids, "nothing is due for ten minutes"
        life.tell(signal.SIGTERM)
        assert await life.end() == 0, life.said
        assert "missing" not in life.said
        here.changes = {"service": {"pipelines": {"traces/renamed": pipeline([])["pipelines"]["traces"]}}}
        life = await here.start()
        await here.comes({id for request in requests for _, id in request.spans})
        life.tell(signal.SIGTERM)
        assert await life.end() == 0, life.said
        assert "spans early: in the new configuration no processor takes them over" in life.said
        assert max(here.times().values()) == 1
