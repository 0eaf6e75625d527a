"""AsyncTraceContextPropagation (KEP-5915) decides whether annotations are read and written, tracing or not."""

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.control_plane

KEY = "tracing.k8s.io/traceparent"
GIVEN = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"


@pytest.mark.parametrize(
    ("gates", "rewritten"),
    [
        ("SchedulerTracing=true", False),
        ("AsyncTraceContextPropagation=true", False),
        ("SchedulerTracing=true,AsyncTraceContextPropagation=true", True),
    ],
)
def test_the_annotation_is_rewritten_only_with_both_gates(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any, gates: str, rewritten: bool
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    pod = make_pod("web", namespace, nodeSelector={"for": namespace})
    pod["metadata"]["annotations"] = {KEY: GIVEN}

    async def test() -> Any:
        async with running(namespace, gates=gates, tracing={"endpoint": "127.0.0.1:1"}):
            await asyncio.to_thread(api.create, pods, pod)
            return await until(lambda: api.get(f"{pods}/web"), lambda found: "nodeName" in found["spec"])

    written = asyncio.run(test())["metadata"]["annotations"][KEY]
    assert (written != GIVEN) is rewritten
