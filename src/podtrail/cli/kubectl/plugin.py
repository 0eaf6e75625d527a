"""The program `kubectl-podtrail`: finds podtrail in the cluster, forwards its page, asks, closes."""

import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from types import FrameType
from typing import Final, NoReturn

import click

from podtrail.cli import main
from podtrail.cli.kubectl.arguments import PAGE_PORT, TypedCommand, read_arguments
from podtrail.cli.kubectl.client import Kubectl, KubectlError
from podtrail.cli.kubectl.finding import PodtrailPod, WantedPod, find_podtrail
from podtrail.cli.kubectl.forwarding import forwarded
from podtrail.cli.running_page import NobodyThere, asking
from podtrail.config import printable

NAME: Final = "kubectl podtrail"
_SECONDS: Final = 10.0
_HELP: Final = f"""
In a cluster: commands that ask a running page ask the one of the cluster, through a port that is forwarded meanwhile.

  --context, --kubeconfig, --as, --user, --server    as kubectl's
  -n NAMESPACE                        the Pod's namespace; for commands without one, podtrail's
  --pod NAMESPACE/NAME                the Pod that podtrail runs in, where several do
  --podtrail-namespace, -l/--selector where to look for it
  --page-port {PAGE_PORT}                   of its viewer

  {NAME} why my-pod              is {NAME} why pod my-pod
  {NAME} why my-pod --endpoint http://localhost:{PAGE_PORT}   asks that one
"""


def run(typed: Sequence[str]) -> NoReturn:
    """Run the plugin; ends the process with the command's exit code."""
    # Whoever ends this ends the forwarding, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _end)
    try:
        asked = read_arguments(typed, main)
        if not asked.path and (not typed or typed[0] in ("-h", "--help")):
            main(["--help"], prog_name=NAME, standalone_mode=False)
            click.echo(_HELP, nl=False)
            sys.exit(0)
        with ExitStack() as stack:
            main(_whole(asked, stack) if asked.asks else _as_typed(asked, typed), prog_name=NAME)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except KubectlError as error:
        for line in str(error).splitlines():
            click.echo(f"podtrail: {printable(line)}" if not line.startswith("  ") else printable(line), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)


def _as_typed(asked: TypedCommand, typed: Sequence[str]) -> list[str]:
    """Return the command line of a command that asks nobody in the cluster."""
    return [*asked.path, *asked.rest] if asked.path[:1] == ("why",) else list(typed)


def _whole(asked: TypedCommand, stack: ExitStack) -> list[str]:
    """Return podtrail's command line, with the address of a page that is forwarded for as long as the stack stands."""
    words, rest = list(asked.path), list(asked.rest)
    kubectl = Kubectl(asked.flags)
    namespace = asked.options.get("--podtrail-namespace", "")
    if asked.takes_namespace:
        rest = rest if asked.names_namespace else _in_namespace(asked.pod, rest, kubectl)
    else:
        own, rest = _taken(rest)
        namespace = namespace or own
    wanted = WantedPod(asked.options.get("--pod", ""), namespace, asked.options.get("--selector", ""))
    pod = find_podtrail(kubectl, wanted)
    port = asked.options.get("--page-port", str(PAGE_PORT))
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65_536):
        raise click.UsageError("--page-port is the number of a port")
    local = stack.enter_context(forwarded(kubectl, pod, int(port)))
    endpoint = f"http://127.0.0.1:{local}"
    _knock(endpoint, pod, int(port))
    return [*words, "--endpoint", endpoint, *rest]


def _in_namespace(pod: str, rest: list[str], kubectl: Kubectl) -> list[str]:
    """Name the context's namespace for a Pod of which only the name is given."""
    if "/" in pod or (len(pod) == 36 and pod.count("-") == 4):
        return rest
    namespace = kubectl.namespace()
    return ["--namespace", namespace, *rest] if namespace else rest


def _taken(rest: Sequence[str]) -> tuple[str, list[str]]:
    """Take `-n` out of the words of a command that has none."""
    namespace, left, words = "", [], iter(rest)
    for word in words:
        name, _, value = word.partition("=")
        if name in ("-n", "--namespace"):
            namespace = value or next(words, "")
        else:
            left.append(word)
    return namespace, left


def _knock(endpoint: str, pod: PodtrailPod, port: int) -> None:
    """Raise KubectlError where nobody answers behind the forwarded port: a sidecar may have no page."""
    with suppress(NobodyThere, BrokenPipeError), asking(endpoint, "/api/v1/changes", {}, _SECONDS):
        return  # somebody answers: what is wrong with it the command says
    raise KubectlError(
        f"{pod.place} has no page on port {port}: add the viewer extension to its configuration, or say --page-port"
    )


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)
