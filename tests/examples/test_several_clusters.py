"""examples/several-schedulers/ with agents of two clusters at one gateway: Pods of one name are asked for as two."""

import json
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import write_request
from podtrail.testing.attempts import START, no_room
from tests.examples.several_schedulers import ANYWHERE, EXAMPLES, PODTRAIL, ROOMY
from tests.scheduler.collector import Collector
from tests.service.conftest import Process, free_port

__all__ = ["free_port"]

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
DEADLINE = 600
CLUSTERS = ("production-east", "production-west")


def running(stack: ExitStack, folder: Path, example: str, environment: dict[str, str], *settings: str) -> Process:
    folder.mkdir()
    token = folder.parent / "token"
    token.write_text("s3cret")
    sets = [f"--set={each}" for each in (*(f"{key}=127.0.0.1:0" for key in ANYWHERE), ROOMY, *settings)]
    arguments = ["run", "--config", str(EXAMPLES / example), *sets]
    process = Process(
        [str(PODTRAIL)], arguments, folder, {"LISTEN": "127.0.0.1:0", "TOKEN_FILE": str(token)} | environment
    )
    stack.callback(process.close)
    return process.ready()


def why(page: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["why", "pod", *words, "--endpoint", page])


def test_pods_of_one_name_in_two_clusters_are_asked_for_by_their_clusters(tmp_path: Path, free_port: Any) -> None:
    page, spans = f"http://127.0.0.1:{(port := free_port())}", f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        backend = Collector()
        stack.callback(backend.stop)
        gateway = running(
            stack,
            tmp_path / "gateway",
            "gateway.yaml",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{backend.endpoint}"},
            "processors.tail_sampling.decision_wait=1s",
            "processors.tail_sampling.decision_wait_after_root_received=100ms",
            "processors.link_stitching.reorder_wait=100ms",
            f"extensions.viewer.endpoint=127.0.0.1:{port}",
            f"extensions.viewer.otlp_endpoint={spans}",
            f"exporters.otlp_grpc/page.endpoint=http://{spans}",
        )
        for at, cluster in enumerate(CLUSTERS):
            about = {
                "CLUSTER": cluster,
                "NODE_NAME": "control-plane-1",
                "GATEWAY": f"http://127.0.0.1:{gateway.port()}",
            }
            agent = running(stack, tmp_path / cluster, "agent.yaml", about)
            with grpc.insecure_channel(f"127.0.0.1:{agent.port()}") as channel:
                attempt = no_room(uid=f"uid-{at}", start=START)
                export: Any = channel.unary_unary(METHOD)
                export(write_request(attempt.groups()), timeout=DEADLINE)
        end = time.monotonic() + DEADLINE
        while "2 clusters have" not in (asked := why(page, "default/web-0")).stderr:
            assert time.monotonic() < end, f"{asked}\n{gateway.log}"
        assert asked.exit_code == 1
        said, *commands = asked.stderr.splitlines()
        assert said.startswith("podtrail: 2 clusters have a Pod default/web-0 (asked http://")
        assert [command.partition(" why ")[2] for command in commands] == [
            f"pod --cluster {cluster} default/web-0 --endpoint {page}" for cluster in CLUSTERS
        ]
        for at, cluster in enumerate(CLUSTERS):
            told = json.loads(why(page, "default/web-0", "--cluster", cluster, "--json").stdout)
            assert (told["pod"]["uid"], told["pod"]["cluster"]) == (f"uid-{at}", cluster)
            first = why(page, "default/web-0", "--cluster", cluster).stdout.splitlines()[0]
            assert first.startswith(f"default/web-0 in cluster {cluster} is Pending")
