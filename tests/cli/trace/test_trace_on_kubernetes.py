"""`podtrail trace` as its user runs it: the real kubectl, a real API server, and what that one's spans say."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.trace.conftest import Done, manifest, pod, until
from tests.envtest.control_plane import ControlPlane
from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane
Trace = Callable[..., Done]


def test_each_request_of_kubectl_is_in_the_one_trace_that_is_printed(
    trace: Trace, plane: ControlPlane, kubectl: Path, collector: Collector, place: str, tmp_path: Path
) -> None:
    done = trace("--", kubectl, "-n", place, "apply", "-f", manifest(tmp_path / "x.json", pod("web")))
    assert (done.code, done.out) == (0, "pod/web created\n")
    uid = plane.api.get(f"/api/v1/namespaces/{place}/pods/web")["metadata"]["uid"]
    assert f"Pod {place}/web  uid {uid}\n" in done.told
    assert f"podtrail why pod {uid}" in done.told

    def posted() -> list[object]:
        spans = [span for span in collector.spans if span.trace_id == done.trace_id]
        return [span for span in spans if span.name == "POST /api/v1/namespaces/{:namespace}/pods"]

    [span] = until(posted)
    assert span.parent_span_id  # the request's own


def test_for_an_ordinary_user_the_api_servers_own_root_links_to_the_trace(
    trace: Trace, plane: ControlPlane, kubectl: Path, collector: Collector, place: str, tmp_path: Path
) -> None:
    x = manifest(tmp_path / "x.json", pod("web"))
    done = trace("--kubeconfig", plane.user("alice"), "--", kubectl, "-n", place, "create", "-f", x)
    assert done.code == 0

    def linked() -> list[object]:
        posts = [span for span in collector.spans if span.name == "POST /api/v1/namespaces/{:namespace}/pods"]
        return [span for span in posts if done.trace_id in [link.trace_id for link in span.links]]

    [root] = until(linked)
    assert root.trace_id != done.trace_id
    assert not root.parent_span_id


def test_the_kubeconfig_of_a_run_is_its_owners_alone_holds_no_credentials_and_is_gone_afterwards(
    trace: Trace, plane: ControlPlane
) -> None:
    done = trace("--", "sh", "-c", 'stat -c "%a %n" "$KUBECONFIG" "$(dirname "$KUBECONFIG")"; cat "$KUBECONFIG"')
    modes, rest = done.out.split("\n{", 1)
    assert [line.split()[0] for line in modes.splitlines()] == ["600", "700"]
    told = json.loads("{" + rest)
    users = json.loads(plane.kubeconfig.read_text())["users"]
    for secret in users[0]["user"].values():
        assert secret not in rest
    assert [set(user["user"]) for user in told["users"]] == [{"token"}]
    assert re.fullmatch(r"https://127\.0\.0\.1:\d+", told["clusters"][0]["cluster"]["server"])
    assert not Path(modes.splitlines()[1].split()[1]).exists()


def test_another_process_without_the_runs_token_is_refused(trace: Trace) -> None:
    script = """
import base64, json, os, ssl, sys, urllib.error, urllib.request
config = json.load(open(os.environ["KUBECONFIG"]))
cluster = config["clusters"][0]["cluster"]
tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
for token in ("", "Bearer guess"):
    request = urllib.request.Request(cluster["server"] + "/api", headers={"Authorization": token} if token else {})
    try:
        urllib.request.urlopen(request, context=tls)
    except urllib.error.HTTPError as error:
        print(error.code, json.load(error)["message"])
"""
    done = trace("--", sys.executable, "-c", script)
    assert done.out.splitlines() == ["401 podtrail trace: only the traced command may come in here"] * 2
    assert "2 requests without this run's token refused" in done.told


def test_what_the_api_server_refuses_reaches_the_user_and_the_exit_code_is_kubectls(
    trace: Trace, kubectl: Path, place: str
) -> None:
    done = trace("--", kubectl, "-n", place, "get", "pod", "nobody")
    assert done.code == 1
    assert 'Error from server (NotFound): pods "nobody" not found\n' in done.told
    assert trace("--", "sh", "-c", "exit 7").code == 7
    assert trace("--", "sh", "-c", "kill -KILL $$").code == 137


def test_the_clients_own_spans_go_to_an_endpoint_with_nothing_of_the_arguments_but_the_verb(
    trace: Trace, kubectl: Path, collector: Collector, place: str
) -> None:
    own = Collector()
    try:
        options = ("--otlp-endpoint", own.endpoint, "--", kubectl, "-n", place)
        done = trace(*options, "create", "secret", "generic", "s", "--from-literal=password=hunter2")
        assert done.code == 0
        root = own.named("kubectl create")
        children = [span for span in own.spans if span is not root]
        assert {span.trace_id for span in own.spans} == {done.trace_id}
        assert {span.parent_span_id for span in children} == {root.span_id}
        assert [attributes(span)["http.request.method"] for span in children][-1] == "POST"
        assert "hunter2" not in str(own.spans)
        ids = {span.span_id for span in children}
        until(lambda: [s for s in collector.spans if s.trace_id == done.trace_id and s.parent_span_id in ids])
    finally:
        own.stop()


def test_kubectl_finds_it_as_its_plugin(plane: ControlPlane, kubectl: Path, tmp_path: Path) -> None:
    beside = Path(sys.executable).parent
    assert (beside / "kubectl-podtrail").is_file()
    environ = os.environ | {"PATH": f"{beside}:{os.environ['PATH']}", "KUBECONFIG": str(plane.kubeconfig)}
    environ["HOME"] = str(tmp_path)
    done = subprocess.run(
        [kubectl, "podtrail", "trace", "--", str(kubectl), "get", "namespace", "default", "-o", "name"],
        env=environ,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "namespace/default\n")
    assert "kubectl get, " in done.stderr
    helped = subprocess.run(
        [kubectl, "podtrail", "--help"], env=environ, check=True, capture_output=True, text=True
    ).stdout
    assert helped.startswith("Usage: kubectl podtrail ")
