"""docs/webhook.md: what it shows is run, and what it lists is all there is."""

import base64
import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from podtrail_webhook.mutation import InjectionResult
from podtrail_webhook.places import place_of
from podtrail_webhook.review import read_review
from podtrail_webhook.server import MAX_BODY, MAX_CONNECTIONS, MAX_IN_FLIGHT, READ_SECONDS

from tests.webhook.conftest import HOST, TRACEPARENT, Certified, Client, RunningWebhook, pod, review

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "webhook.md").read_text("utf-8")


def block(containing: str) -> str:
    """The one block of shell commands that has these words."""
    (found,) = (each for each in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if containing in each)
    return str(found)


def test_the_command_with_certificates_from_files_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certified = Certified(tmp_path)
    monkeypatch.chdir(tmp_path)
    program, name, *arguments = shlex.split(block("podtrail webhook --endpoint").replace("\\\n", " "))
    assert (program, name) == ("podtrail", "webhook")
    assert f"--endpoint={HOST}:9443" in arguments
    arguments.remove(f"--endpoint={HOST}:9443")  # a port that is free in its place
    webhook = RunningWebhook(arguments)
    try:
        client = Client(webhook.port, certified.authority)
        assert client.send(review(pod()), traceparent=TRACEPARENT)[0] == 200
        client.connection.close()
    finally:
        assert webhook.stop() == 0


def test_what_is_applied_is_there_in_the_order_in_which_it_works() -> None:
    commands = [shlex.split(line) for line in block("kubectl apply").splitlines()]
    files = [ROOT / words[words.index("-f") + 1] for words in commands if words[1] == "apply"]
    kinds = [[each["kind"] for each in yaml.safe_load_all(path.read_text("utf-8"))] for path in files]
    assert "Deployment" in kinds[0]
    assert kinds[-1] == ["MutatingWebhookConfiguration"]
    assert shlex.split("kubectl -n podtrail rollout status deployment/podtrail-webhook") in commands


def test_the_bounds_are_those_of_the_server() -> None:
    mib = 1 << 20
    text = " ".join(PAGE.split())
    assert f"{MAX_BODY // mib} MiB each, {MAX_IN_FLIGHT // mib} MiB together, on {MAX_CONNECTIONS} connections" in text
    assert f"bodies have {READ_SECONDS:g} s to come" in text


def test_all_results_are_listed() -> None:
    row = next(line for line in PAGE.splitlines() if "trace_context_annotations_injected_total" in line)
    assert re.findall(r"`([a-z_]+)`", row) == list(InjectionResult)


def test_the_metrics_are_those_that_are_exposed(tmp_path: Path) -> None:
    certified = Certified(tmp_path)
    webhook = RunningWebhook(certified.arguments)
    try:
        client = Client(webhook.port, certified.authority)
        client.send(review(pod()))
        client.send(b"")
        client.connection.close()
        exposed = set(re.findall(r"^# HELP (\S+)", webhook.get(webhook.metrics_port, "/metrics")[1], re.MULTILINE))
    finally:
        webhook.stop()
    named = set(re.findall(r"`((?:trace_context|podtrail_webhook)_\w+)", PAGE))
    assert named == {name for name in exposed if not name.startswith("otelcol_process_")}


def test_the_kinds_in_the_table_are_those_that_are_written_into() -> None:

    rows = re.findall(r"^\| ([A-Z][\w, ]+) \| (its own annotations|`[\w.]+`) \|$", PAGE, re.MULTILINE)
    groups = {"Pod": "", "ReplicationController": "", "Job": "batch", "CronJob": "batch"}
    listed = {kind: place.strip("`") for kinds, place in rows for kind in kinds.split(", ")}
    assert len(listed) == 8
    for kind, place in listed.items():
        asked = read_review(json.dumps(review({"kind": kind, "metadata": {}}, groups.get(kind, "apps"))).encode())
        found = place_of(asked)
        assert found is not None
        way = found.path.removesuffix("/metadata").removeprefix("/").replace("/", ".")
        assert way == ("" if place == "its own annotations" else place)


@pytest.mark.skipif(not (shutil.which("openssl") and shutil.which("bash")), reason="needs openssl and bash")
def test_an_api_server_is_led_to_the_webhook_of_one_machine(tmp_path: Path) -> None:
    made = subprocess.run(["bash", "-exc", block("openssl req")], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    told = re.search(r"-p '(.*?)'\"\$\((.*?)\)\"'(.*?)' \|", block("kubectl patch"), re.DOTALL)
    assert told
    bundle = subprocess.run(["bash", "-c", told[2]], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (replaced,) = json.loads(told[1] + bundle + told[3])
    place = yaml.safe_load((ROOT / "docker/kubernetes/webhook/configuration.yaml").read_text("utf-8"))
    for part in replaced["path"].strip("/").split("/"):
        place = place[int(part) if part.isdigit() else part]
    assert place["service"]["path"] == "/mutate"
    assert replaced["value"]["url"] == f"https://{HOST}:9443/mutate"
    assert b"BEGIN CERTIFICATE" in base64.b64decode(replaced["value"]["caBundle"])
