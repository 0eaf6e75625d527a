"""Whatever a kubeconfig says who asks, the proxy asks as that user, and the command gets nothing of it."""

import base64
import json
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.trace.conftest import Done
from tests.envtest.control_plane import ControlPlane

pytestmark = pytest.mark.control_plane
Trace = Callable[..., Done]
WHO = ("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")


@pytest.fixture
def token(plane: ControlPlane, place: str) -> str:
    """Of the ServiceAccount `bot`."""
    accounts = f"/api/v1/namespaces/{place}/serviceaccounts"
    plane.api.create(accounts, {"metadata": {"name": "bot"}})
    made = plane.api.create(
        f"{accounts}/bot/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    )
    return str(made["status"]["token"])


@pytest.fixture
def as_user(plane: ControlPlane, tmp_path: Path) -> Callable[[Mapping[str, Any]], Path]:
    """Writes a kubeconfig with a user."""
    return lambda user: plane.write_kubeconfig(tmp_path / "of-user", user)


def plugin(path: Path, status: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """A credential plugin that answers with that, or fails."""
    version = "client.authentication.k8s.io/v1"
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    act = f"cat <<'EOF'\n{answer}\nEOF" if status is not None else "echo the vault is sealed >&2; exit 3"
    path.write_text(f"#!/bin/sh\n{act}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": version, "command": str(path), "interactiveMode": "Never"}}


@pytest.mark.parametrize("way", ["token", "tokenFile", "exec"])
def test_tokens_of_all_kinds_are_used_and_stay_here(
    way: str, trace: Trace, kubectl: Path, place: str, token: str, as_user: Any, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(token + "\n")
    users = {
        "token": {"token": token},
        "tokenFile": {"tokenFile": str(file)},
        "exec": plugin(tmp_path / "plugin", {"token": token}),
    }
    kubeconfig = as_user(users[way])
    done = trace("--kubeconfig", kubeconfig, "--", kubectl, *WHO)
    assert (done.code, done.out) == (0, f"system:serviceaccount:{place}:bot"), done.told
    seen = trace("--kubeconfig", kubeconfig, "--", "sh", "-c", 'cat "$KUBECONFIG"; env')
    assert token not in seen.out


def test_certificates_of_a_plugin_are_used(
    trace: Trace, plane: ControlPlane, kubectl: Path, as_user: Any, tmp_path: Path
) -> None:
    [alice] = json.loads(plane.user("alice").read_text())["users"]
    names = {"clientCertificateData": "client-certificate-data", "clientKeyData": "client-key-data"}
    status = {key: base64.b64decode(alice["user"][name]).decode() for key, name in names.items()}
    kubeconfig = as_user(plugin(tmp_path / "plugin", status))
    assert trace("--kubeconfig", kubeconfig, "--", kubectl, *WHO).out == "alice"


def test_a_plugin_that_fails_is_told_before_anything_runs(
    trace: Trace, kubectl: Path, as_user: Any, tmp_path: Path
) -> None:
    done = trace("--kubeconfig", as_user(plugin(tmp_path / "plugin", None)), "--", "touch", tmp_path / "ran")
    assert done.code == 2
    assert "credential plugin: exec: process returned 3" in done.told
    assert "the vault is sealed" in done.told
    assert not (tmp_path / "ran").exists()


def test_a_token_that_is_not_known_is_the_api_servers_to_refuse(trace: Trace, kubectl: Path, as_user: Any) -> None:
    done = trace("--kubeconfig", as_user({"token": "wrong"}), "--", kubectl, "get", "pods")
    assert done.code == 1
    assert "You must be logged in to the server" in done.told


def test_a_kubeconfig_that_impersonates_goes_on_doing_so(
    trace: Trace, plane: ControlPlane, kubectl: Path, as_user: Any
) -> None:
    [admin] = json.loads(plane.kubeconfig.read_text())["users"]
    kubeconfig = as_user(admin["user"] | {"as": "mallory", "as-groups": ["system:masters"]})
    assert trace("--kubeconfig", kubeconfig, "--", kubectl, *WHO).out == "mallory"


def test_each_context_leads_to_its_own_user_whoever_names_it(
    trace: Trace, plane: ControlPlane, kubectl: Path, tmp_path: Path
) -> None:
    configs = {name: json.loads(plane.user(*user).read_text()) for name, user in USERS.items()}
    for name, config in configs.items():
        [context], [user] = config["contexts"], config["users"]
        context["name"] = name
        context["context"] |= {"user": name, "namespace": f"of-{name}"}
        user["name"] = name
        (tmp_path / name).write_text(json.dumps(config | {"current-context": name}))
    both = {"KUBECONFIG": f"{tmp_path / 'admin'}:{tmp_path / 'nobody-yet'}:{tmp_path / 'alice'}"}
    assert trace("--", kubectl, *WHO, environ=both).out == "admin"
    assert trace("--context", "alice", "--", kubectl, *WHO, environ=both).out == "alice"
    assert trace("--", kubectl, "--context=alice", *WHO, environ=both).out == "alice"
    switching = f"{kubectl} {' '.join(WHO[:3])} jsonpath={{.status.userInfo.username}} --context alice"
    assert trace("--", "sh", "-c", switching, environ=both).out == "alice"
    said = trace("--", kubectl, "--context", "alice", "get", "pods", environ=both)
    assert "No resources found in of-alice namespace." in said.told


USERS = {"admin": ("admin", "system:masters"), "alice": ("alice",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", r"not YAML: .*line 1, column 5"),
        ("", r"is empty or no mapping"),
        ("contexts: 7", r"contexts: is no list"),
        ("contexts: [{name: a}]", r"contexts\[0\]: needs a name and a mapping `context`"),
        ("current-context: b", r"no context 'b' in the kubeconfig; there are: none"),
        ("contexts: [{name: a, context: {cluster: c}}]", r"no current-context in the kubeconfig; there are: a"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: c}}]", r"clusters"),
    ],
)
def test_a_bad_kubeconfig_is_told_with_its_place(text: str, said: str, trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    done = trace("--kubeconfig", path, "--", "touch", tmp_path / "ran")
    assert done.code == 2
    assert re.search(said, done.told.replace("\\n", " "), re.DOTALL), done.told
    assert "Traceback" not in done.told
    assert not (tmp_path / "ran").exists()
