"""The command, its options, and what of the traced command's arguments it looks at."""

import asyncio
import logging
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any, Final

import click

from podtrail.cli.durations import DURATION
from podtrail.cli.running_page import checked_endpoint
from podtrail.config import printable

_NOT_RUN: Final = 126
_NOT_FOUND: Final = 127
_CLIENTS: Final = ("kubectl", "oc", "helm")
_PAST_THE_PROXY: Final = frozenset(
    (
        "--kubeconfig",
        "--server",
        "--token",
        "--client-certificate",
        "--client-key",
        "--certificate-authority",
        "--insecure-skip-tls-verify",
        "--tls-server-name",
        "--kube-apiserver",
        "--kube-token",
        "--kube-ca-file",
    )
)
"""Options of clients that say where the API server is or who asks, which the temporary kubeconfig has to say."""
_SHORT_FOR_SERVER: Final = ("kubectl", "oc")
"""Clients to which `-s` is the server; helm shows templates by it."""
_PAST_THE_PROXY_OF_HELM: Final = (
    "HELM_KUBEAPISERVER",
    "HELM_KUBECAFILE",
    "HELM_KUBEINSECURE_SKIP_TLS_VERIFY",
    "HELM_KUBETLS_SERVER_NAME",
    "HELM_KUBETOKEN",
)
"""The same, as helm reads them from its environment."""
_VERBS: Final = re.compile(
    "annotate|api-resources|api-versions|apply|attach|auth|autoscale|certificate|cluster-info|config|cordon|cp|create|"
    "debug|delete|describe|diff|drain|edit|events|exec|explain|expose|get|install|kustomize|label|logs|patch|"
    "port-forward|proxy|replace|rollback|rollout|run|scale|set|taint|template|test|top|uncordon|uninstall|upgrade|"
    "version|wait"
)


@click.command("trace", context_settings={"allow_interspersed_args": False})
@click.option("--kubeconfig", metavar="FILE", help="By default $KUBECONFIG, else ~/.kube/config, else the Pod's own.")
@click.option("--context", metavar="NAME", help="The kubeconfig's context; by default the command's, or the current.")
@click.option("--wait", is_flag=True, help="Follow the Pods until they are ready, and tell how each got there.")
@click.option("--timeout", type=DURATION, default="5m", show_default=True, help="How long --wait waits.")
@click.option(
    "--endpoint",
    metavar="URL",
    callback=lambda context, option, value: value and checked_endpoint(context, option, value),
    help="A running page, such as http://localhost:15927, which tells the stories.",
)
@click.option(
    "--otlp-endpoint",
    metavar="URL",
    help="Where the client's own spans go; by default $OTEL_EXPORTER_OTLP_ENDPOINT, else nowhere.",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    command: tuple[str, ...],
    kubeconfig: str | None,
    context: str | None,
    wait: bool,
    timeout: int,
    endpoint: str | None,
    otlp_endpoint: str | None,
) -> None:
    """Run a client of Kubernetes so that each of its requests is traced: podtrail trace -- kubectl apply -f x.yaml.

    The trace id, the Pods that came of it and where to see them are printed to standard error. Exit code: the
    command's; 1 when a Pod is not ready in time (--wait); 2: usage or kubeconfig; 126: it can't be run; 127: no
    such command.
    """
    from podtrail.cli.trace.child import NotRun
    from podtrail.cli.trace.run import INTERRUPTED, TraceOptions, TraceProblem, trace

    _check_options(command)
    if shutil.which(command[0]) is None:
        click.echo(f"podtrail: {printable(command[0])}: command not found", err=True)
        sys.exit(_NOT_FOUND)
    options = TraceOptions(
        command=command,
        title=title(command),
        kubeconfig=kubeconfig or _kubeconfig(),
        context=context or _context(command),
        wait_seconds=timeout / 1_000_000_000 if wait else None,
        endpoint=endpoint,
        otlp_endpoint=otlp_endpoint,
    )
    # What watches say of their troubles is in the report, once; between a command's own lines it would disturb.
    logging.getLogger("podtrail_kubernetes").addHandler(logging.NullHandler())
    try:
        code = asyncio.run(trace(options))
    except TraceProblem as problem:
        click.echo(f"podtrail: {printable(str(problem))}", err=True)
        sys.exit(2)
    except NotRun as problem:
        click.echo(f"podtrail: {printable(str(problem))}", err=True)
        sys.exit(_NOT_RUN)
    except asyncio.CancelledError:
        code = INTERRUPTED
    sys.exit(code)


def title(command: tuple[str, ...]) -> str:
    """Return the program and its verb: other arguments may be secrets."""
    program = Path(command[0]).name
    verb = next((each for each in command[1:] if _VERBS.fullmatch(each)), "") if program in _CLIENTS else ""
    return f"{program} {verb}".strip()


def _check_options(command: tuple[str, ...]) -> None:
    program = Path(command[0]).name
    if program not in _CLIENTS:
        return
    for each in _own_options(command):
        name = each.partition("=")[0]
        if program in _SHORT_FOR_SERVER and each.startswith("-s"):
            name = "--server"
        if name in ("--kubeconfig", "--server"):
            raise click.UsageError(
                f"with {name} {command[0]} would go past podtrail: say where the API server is before the command: "
                f"podtrail trace --kubeconfig FILE --context NAME -- {command[0]} ..."
            )
        if name in _PAST_THE_PROXY:
            raise click.UsageError(
                f"{name} would take the place of what leads {command[0]} through podtrail: put it into a kubeconfig, "
                f"and give that before the command: podtrail trace --kubeconfig FILE -- {command[0]} ..."
            )
    for name in _PAST_THE_PROXY_OF_HELM if program == "helm" else ():
        if os.environ.get(name):
            raise click.UsageError(
                f"with {name} in the environment {command[0]} would go past podtrail: put what it says into a "
                f"kubeconfig, and give that before the command: podtrail trace --kubeconfig FILE -- {command[0]} ..."
            )


def _own_options(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that are the client's own: behind `--` stand those of what runs in a container."""
    return command[1 : command.index("--", 1)] if "--" in command[1:] else command[1:]


def _context(command: tuple[str, ...]) -> str | None:
    own: Any = _own_options(command)
    for position, each in enumerate(own):
        name, given, value = each.partition("=")
        if name in ("--context", "--kube-context"):
            return value if given else next(iter(own[position + 1 :]), None)
    return None


def _kubeconfig() -> str | None:
    if named := os.environ.get("KUBECONFIG"):
        return named
    usual = Path.home() / ".kube" / "config"
    return str(usual) if usual.exists() else None
