"""Helm as a user runs it on charts/podtrail, and the modes that it is tried with."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.built import BUILT
from tests.envtest.control_plane import ControlPlane

CHART = Path(__file__).parents[2] / "charts" / "podtrail"
ASSETS = BUILT / "helm"
HELMS = ("helm3", "helm4")
SCHEMAS = ("v1.35.8", "v1.36.5", "v1.37.2")
CRDS = (
    *("monitoring.coreos.com_prometheusrules", "monitoring.coreos.com_servicemonitors"),
    *("cert-manager.io_certificates", "cert-manager.io_issuers"),
)
OFF = ("gateway.enabled=false", "stock.enabled=false")
OPERATOR, CERT_MANAGER = "monitoring.coreos.com/v1", "cert-manager.io/v1"
MODES: Mapping[str, tuple[str, ...]] = {
    "as it is": (),
    "agent": (*OFF, "agent.enabled=true"),
    "gateway": ("stock.enabled=false",),
    "gateway with a store": ("stock.enabled=false", "gateway.persistence.enabled=true"),
    "gateways on Kafka": (
        *("stock.enabled=false", "gateway.autoscaling.enabled=true"),
        'gateway.extraConfig.receivers={"kafka": {"brokers": ["kafka:9092"]}}',
        'gateway.extraConfig.service={"pipelines": {"traces": {"receivers": ["kafka"]}}}',
    ),
    "stock": (*OFF, "stock.enabled=true"),
    "scheduler": (*OFF, "scheduler.enabled=true", "backend.endpoint=http://otel.example:4317"),
    "scheduler with a gateway": ("scheduler.enabled=true",),
    "webhook": (*OFF, "webhook.enabled=true"),
    "webhook of cert-manager": (*OFF, "webhook.enabled=true", "webhook.certManager=true"),
    "monitoring": ("monitoring.enabled=true",),
    "all of it": (
        *(f"{mode}.enabled=true" for mode in ("agent", "scheduler", "webhook", "monitoring")),
        *(
            'scheduler.extraConfig={"processors": {"batch": {"timeout": "1s"}}}',
            "clusterName=east",
            "systemNamespace=podtrail",
        ),
    ),
}
"""Values by what they turn on."""


class Helm:
    """A Helm, with folders of its own.

    Args:
        program: Its file.
        home: Where it keeps what it remembers.
        cluster: What it is to talk to.
    """

    def __init__(self, program: Path, home: Path, cluster: ControlPlane | None = None) -> None:
        self.program = program
        self._environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "HELM_CACHE_HOME": str(home / "cache")}
        self.cluster = cluster
        if cluster is not None:
            self._environment["KUBECONFIG"] = str(cluster.kubeconfig)
        self._made: dict[tuple[str, ...], str] = {}

    def run(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a command; with `check` its failure is an AssertionError with what it said."""
        done = subprocess.run(
            [str(self.program), *arguments], env=self._environment, capture_output=True, text=True, timeout=600
        )
        assert not check or done.returncode == 0, done.stdout + done.stderr
        return done

    def template(self, *values: str) -> list[dict[str, Any]]:
        """Return what is made of values; the cluster has the Prometheus operator and cert-manager."""
        if values not in self._made:
            apis = [f"--api-versions={api}" for api in (OPERATOR, CERT_MANAGER)]
            command = ("template", "podtrail", str(CHART), "--namespace=podtrail", *settings(*values), *apis)
            self._made[values] = self.run(*command).stdout
        return [document for document in yaml.load_all(self._made[values], yaml.CSafeLoader) if document]


def settings(*values: str) -> list[str]:
    """Return the options that set values: KEY=VALUE, where a VALUE in braces is JSON."""
    return [f"--set{'-json' if '={' in value else ''}={value}" for value in values]


def pods(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the specs of all Pods in documents."""
    templates = (each["spec"]["template"]["spec"] for each in documents if "template" in each.get("spec", {}))
    return [*(each["spec"] for each in documents if each["kind"] == "Pod"), *templates]
