"""docker/kubernetes/ from the chart: each file is what Helm makes of some templates with some values.

What no template is for (static Pods, schedulers of other people, Kafka) has only its image from the chart.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from tools.docs import dashboards

CHART: Final = Path("charts/podtrail")
MANIFESTS: Final = Path("docker/kubernetes")
_BACKEND: Final = ("gateway.enabled=false", "backend.endpoint=http://otel-backend.observability.svc:4317")
RENDERED: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "agent/agent.yaml": ("agent", ()),
    "gateway/gateway.yaml": ("gateway", ()),
    "scheduler/config.yaml": ("scheduler-config", _BACKEND),
    "scheduler/deployment.yaml": ("scheduler", _BACKEND),
    "scheduler/rbac.yaml": ("scheduler-rbac", _BACKEND),
    "stock/control-plane.yaml": ("stock", ()),
    "stock/rbac.yaml": ("stock-rbac", ("stock.user=podtrail",)),
    "webhook/cert-manager.yaml": ("cert-manager", ("webhook.certManager=true",)),
    "webhook/configuration.yaml": ("webhook-configuration", ()),
    "webhook/self-signed.yaml": ("webhook", ()),
}
"""The template and the values, besides those that turn the mode on, of each file."""
_MODES: Final = ("agent", "scheduler", "stock", "webhook")
_SHOWN: Final = ("docker", "examples")


def helm() -> Path | None:
    """Return Helm: $HELM, what tests/helm/build.sh built, or the PATH's; None if there is none."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podtrail" / "helm" / "helm4"
    found = os.environ.get("HELM") or (str(cache) if cache.is_file() else shutil.which("helm"))
    return Path(found) if found else None


def rendered(root: Path, program: Path) -> dict[Path, str]:
    """Return the text of every file that the chart makes, by path.

    Raises:
        subprocess.CalledProcessError: Helm refuses the chart.
    """
    return {root / MANIFESTS / name: _render(root, program, *how) for name, how in RENDERED.items()}


def with_image(root: Path) -> dict[Path, str]:
    """Return the other files with the chart's image in place of any other of podtrail's, by path."""
    ours, image = re.compile(r"\bimage: podtrail:[\w.-]+"), f"image: {default_image(root)}"
    made = {root / MANIFESTS / name for name in RENDERED}
    found = (path for room in _SHOWN for path in sorted((root / room).rglob("*.yaml")) if path not in made)
    texts = ((path, path.read_text("utf-8")) for path in found)
    return {path: ours.sub(image, text) for path, text in texts if ours.search(text)}


def default_image(root: Path) -> str:
    """Return the image that the chart takes if no value says another."""
    values = yaml.safe_load((root / CHART / "values.yaml").read_text("utf-8"))["image"]
    chart = yaml.safe_load((root / CHART / "Chart.yaml").read_text("utf-8"))
    return f"{values['repository']}:{values['tag'] or chart['appVersion']}"


def copied(root: Path) -> dict[Path, str]:
    """Return what the chart has a copy of, as Helm reads nothing beyond its folder: alerts and dashboards."""
    files = root / CHART / "files"
    alerts = (root / "docker" / "monitoring" / "prometheusrule.yaml").read_text("utf-8")
    boards = {files / "dashboards" / name: text for name, text in dashboards.files().items()}
    return {files / "prometheusrule.yaml": alerts, **boards}


def _render(root: Path, program: Path, template: str, values: tuple[str, ...]) -> str:
    modes = ",".join(f"{mode}.enabled=true" for mode in _MODES)
    command = [str(program), "template", "podtrail", str(root / CHART), "--namespace=podtrail"]
    command += [f"--set={modes},plainManifests=true", *(f"--set={value}" for value in values)]
    command += [f"--show-only=templates/{template}.yaml", "--api-versions=cert-manager.io/v1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - the developer's own Helm
    written = re.sub(r"^ *annotations: \{checksum/config: \w+\}\n", "", done.stdout, flags=re.MULTILINE)
    documents = re.split(r"^---\n# Source: .*\n", written, flags=re.MULTILINE)
    return "---\n".join(f"{document.strip()}\n" for document in documents if document.strip())
