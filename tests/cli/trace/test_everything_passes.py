"""What clients do besides asking for JSON: all of it passes the proxy as if it were not there."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.trace.conftest import Done, Start, manifest, pod, until
from tests.envtest.control_plane import ControlPlane
from tests.scheduler.collector import Collector

pytestmark = pytest.mark.control_plane
Trace = Callable[..., Done]
CLIENT = """
import base64, json, os, ssl, sys, urllib.error, urllib.request
config = json.load(open(os.environ["KUBECONFIG"]))
cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
def ask(path, body=None, method=None, **headers):
    headers = {"Authorization": "Bearer " + user["token"], "Content-Type": "application/json", **headers}
    url = cluster["server"] + path
    return urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method), context=tls, timeout=600)
"""


def test_a_watch_shows_each_event_as_it_comes_and_ends_by_ctrl_c(
    start: Start, plane: ControlPlane, kubectl: Path, place: str
) -> None:
    process = start("--", kubectl, "-n", place, "get", "pods", "-o", "name", "--watch", start_new_session=True)
    assert process.stdout is not None
    for number in range(3):
        plane.api.create(f"/api/v1/namespaces/{place}/pods", pod(f"p{number}"))
        assert process.stdout.readline() == f"pod/p{number}\n"  # hangs where it is held back
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=600)
    assert process.returncode == 1  # kubectl's own code for a watch that was interrupted
    assert "kubectl get, " in told


def test_many_requests_at_once_all_get_their_own_answer(trace: Trace, place: str) -> None:
    script = """
from concurrent.futures import ThreadPoolExecutor
names = [f"c{number}" for number in range(100)]
def make(name):
    body = json.dumps({"metadata": {"name": name}, "data": {"of": name}}).encode()
    return json.load(ask(f"/api/v1/namespaces/{sys.argv[1]}/configmaps", body))["data"]["of"]
with ThreadPoolExecutor(50) as pool:
    assert list(pool.map(make, names)) == names
watches = [ask(f"/api/v1/namespaces/{sys.argv[1]}/configmaps?watch=true") for _ in range(80)]
print(sum(json.loads(watch.readline())["type"] == "ADDED" for watch in watches))
"""
    done = trace("--", sys.executable, "-c", CLIENT + script, place)
    assert (done.code, done.out) == (0, "80\n"), done.told
    assert "180 requests" in done.told


def test_large_bodies_pass_in_chunks_and_whole(trace: Trace, place: str) -> None:
    script = """
text = "x" * 900_000
body = json.dumps({"metadata": {"name": "whole"}, "data": {"k": text}}).encode()
assert len(json.load(ask(f"/api/v1/namespaces/{sys.argv[1]}/configmaps", body))["data"]["k"]) == len(text)
pieces = iter([body.replace(b"whole", b"cut")[:1000], body.replace(b"whole", b"cut")[1000:]])
assert ask(f"/api/v1/namespaces/{sys.argv[1]}/configmaps", pieces).status == 201
read = ask(f"/api/v1/namespaces/{sys.argv[1]}/configmaps", **{"Accept-Encoding": "gzip"})
import gzip
assert read.headers["Content-Encoding"] == "gzip"
print(len(json.loads(gzip.decompress(read.read()))["items"]))
"""
    done = trace("--", sys.executable, "-c", CLIENT + script, place)
    assert done.code == 0, done.told
    assert done.out == "2\n"


@pytest.mark.skipif(
    subprocess.run(["which", "curl"], capture_output=True, check=False).returncode != 0, reason="no curl"
)
def test_curl_that_asks_before_it_sends_is_told_to_go_on(trace: Trace, place: str, tmp_path: Path) -> None:
    body = json.dumps({"metadata": {"name": "c"}, "data": {"k": "x" * 500_000}})
    (tmp_path / "body.json").write_text(body)
    script = """
get() { sed -n "s/.*\\"$1\\": \\"\\([^\\"]*\\)\\".*/\\1/p" "$KUBECONFIG" | head -1; }
get certificate-authority-data | base64 -d > ca.crt
curl -sS --fail --cacert ca.crt -H "Authorization: Bearer $(get token)" -H "Content-Type: application/json" \\
  -H "Expect: 100-continue" --expect100-timeout 30 -o /dev/null -w '%{http_code}' \\
  --data-binary @body.json "$(get server)/api/v1/namespaces/$1/configmaps"
"""
    done = trace("--", "sh", "-ec", script, "sh", place, cwd=tmp_path)
    assert (done.code, done.out) == (0, "201"), done.told


def test_impersonation_server_side_apply_dry_run_and_tables_are_as_ever(
    trace: Trace, plane: ControlPlane, kubectl: Path, place: str, tmp_path: Path
) -> None:
    x = manifest(tmp_path / "x.json", pod("web"))
    tried = trace("--", kubectl, "-n", place, "apply", "--dry-run=server", "-f", x)
    assert tried.out == "pod/web created (server dry run)\n"
    assert "Pod " not in tried.told
    applied = trace("--", kubectl, "-n", place, "apply", "--server-side", "-f", x)
    assert applied.out == "pod/web serverside-applied\n"
    assert f"Pod {place}/web  uid " in applied.told
    table = trace("--", kubectl, "-n", place, "get", "pods").out
    assert re.fullmatch(r"NAME +READY +STATUS +RESTARTS +AGE\nweb +0/1 +Pending +0 +\d+s\n", table)
    refused = trace("--", kubectl, "--as", "mallory", "--as-group", "a", "--as-group", "b", "get", "pods")
    assert 'User "mallory" cannot list resource "pods"' in refused.told
    groups = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.groups}")
    asked = trace("--", kubectl, "--as", "mallory", "--as-group", "a", "--as-group", "b", *groups)
    assert json.loads(asked.out) == ["a", "b", "system:authenticated"]


def test_clients_that_speak_protobuf_tell_their_pods_too(trace: Trace, kubectl: Path, place: str) -> None:
    done = trace("--", kubectl, "-n", place, "create", "deployment", "web", "--image=i", "--replicas=3")
    assert done.code == 0
    assert f"Deployment {place}/web: 0 of 3 Pods seen so far" in done.told  # no controller-manager runs here


def test_a_trace_of_the_commands_own_is_kept_sampled_and_printed(
    trace: Trace, collector: Collector, place: str
) -> None:
    own, garbage = f"00-{'ab' * 16}-{'cd' * 8}-00", f"00-{'0' * 32}-{'cd' * 8}-01"
    script = """
for header in sys.argv[2:]:
    ask(f"/api/v1/namespaces/{sys.argv[1]}/secrets", traceparent=header, tracestate="a=b").read()
"""
    done = trace("--", sys.executable, "-c", CLIENT + script, place, own, garbage)
    assert done.code == 0, done.told
    assert f"trace {'ab' * 16}: 1 request that the command traces itself" in done.told

    def lists(trace_id: bytes) -> list[object]:
        name = "GET /api/v1/namespaces/{:namespace}/secrets"
        return [span for span in collector.spans if span.trace_id == trace_id and span.name == name]

    [kept] = until(lambda: lists(bytes.fromhex("ab" * 16)))
    assert (kept.parent_span_id, kept.trace_state) == (bytes.fromhex("cd" * 8), "a=b")
    [given] = until(lambda: lists(done.trace_id))
    assert given.trace_state == ""


def test_an_upgrade_past_an_http_proxy_is_refused_with_what_to_do(
    trace: Trace, plane: ControlPlane, tmp_path: Path
) -> None:
    config = json.loads(plane.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = "http://127.0.0.1:9"
    (tmp_path / "proxied").write_text(json.dumps(config))
    script = """
try:
    raw("/api/v1/namespaces/default/pods/p/exec?command=secret", Upgrade="websocket", Connection="Upgrade")
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["message"])
"""
    raw = """
import http.client, io, urllib.parse
def raw(path, **headers):
    parts = urllib.parse.urlsplit(cluster["server"])
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=tls, timeout=600)
    connection.request("GET", path, headers={"Authorization": "Bearer " + user["token"], **headers})
    answer = connection.getresponse()
    raise urllib.error.HTTPError(path, answer.status, "", answer.headers, io.BytesIO(answer.read()))
"""
    done = trace("--kubeconfig", tmp_path / "proxied", "--", sys.executable, "-c", CLIENT + raw + script)
    assert done.out.startswith("501 podtrail trace: exec, attach, port-forward and cp don't pass the HTTP proxy")
    assert "run this command without podtrail trace" in done.out


def test_a_command_that_asks_nothing_is_told_so(trace: Trace) -> None:
    assert "no request came through" in trace("--", "true").told


def test_when_the_api_server_goes_away_the_command_ends_as_without_podtrail_and_later_ones_are_told(
    start: Start, trace: Trace, start_control_plane: Callable[..., ControlPlane], kubectl: Path
) -> None:
    mortal = start_control_plane()
    here = {"KUBECONFIG": str(mortal.kubeconfig)}
    watch = (str(kubectl), "get", "namespaces", "-o", "name", "--watch")
    process = start("--", *watch, environ=here)
    pipe = subprocess.PIPE
    with subprocess.Popen(watch, env=os.environ | here, text=True, stdout=pipe, stderr=pipe) as alone:
        for each in (process, alone):
            assert each.stdout is not None
            for name in (f"listed-{each.pid}", f"watched-{each.pid}"):  # the watch has begun when it shows a second
                mortal.api.namespace(name)
                while each.stdout.readline() != f"namespace/{name}\n":
                    pass
        mortal.stop_one("kube-apiserver", kill=True)
        _, told = process.communicate(timeout=600)
        _, told_alone = alone.communicate(timeout=600)
    assert process.returncode == alone.returncode
    assert told.partition("podtrail: trace")[0] == told_alone
    done = trace("--", kubectl, "get", "namespaces", environ=here)
    assert done.code == 1
    assert f" requests: no answer from https://127.0.0.1:{mortal.port}: Connect" in done.told
    mortal.stop()
