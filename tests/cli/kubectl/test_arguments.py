import click
import pytest
from click import UsageError
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.cli.kubectl.arguments import read_arguments
from podtrail.cli.kubectl.plugin import _in_namespace


@pytest.mark.parametrize(
    ("typed", "path", "rest"),
    [
        ("why my-pod", ("why", "pod"), ("my-pod",)),
        ("why pod my-pod -v", ("why", "pod"), ("my-pod", "-v")),
        (f"why {'ab' * 16}", ("why", "trace"), ("ab" * 16,)),
        ("why pending", ("why", "pending"), ()),
        ("top --once", ("top",), ("--once",)),
        ("report incident --from 14:02", ("report", "incident"), ("--from", "14:02")),
        ("support-bundle", ("support-bundle",), ()),
    ],
)
def test_commands_that_ask_a_page_ask_the_clusters(typed: str, path: tuple[str, ...], rest: tuple[str, ...]) -> None:
    read = read_arguments(typed.split(), main)
    assert (read.path, read.rest, read.asks) == (path, rest, True)


@pytest.mark.parametrize(
    "typed",
    [
        "why my-pod --endpoint http://localhost:1",
        "why my-pod --endpoint=http://localhost:1",
        "why my-pod --from x.otlp",
        "why pod --help",
        "validate --config x.yaml",
        f"report pod x {__file__}",
        "trace -- kubectl get pods",
        "nonsense",
        "",
    ],
)
def test_all_others_are_run_as_they_are(typed: str) -> None:
    assert not read_arguments(typed.split(), main).asks


def test_options_of_kubectl_and_of_the_plugin_may_stand_anywhere() -> None:
    read = read_arguments(
        [
            *("why", "--context=blue", "x", "-n", "shop", "--kubeconfig", "/k", "-l", "a=b", "--pod", "n/p"),
            *("--", "--context", "red"),
        ],
        main,
    )
    assert read.flags == ("--context", "blue", "--kubeconfig", "/k")
    assert read.options == {"--selector": "a=b", "--pod": "n/p"}
    assert read.rest == ("x", "-n", "shop", "--", "--context", "red")
    assert read.takes_namespace
    assert not read_arguments(["top"], main).takes_namespace


@pytest.mark.parametrize("option", ["--context", "--pod", "-l"])
def test_an_option_without_a_value_is_refused(option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} has no value"):
        read_arguments(["top", option], main)


@pytest.mark.parametrize(
    ("typed", "pod", "named"),
    [
        ("why pod --attempt 3 default/web-0", "default/web-0", False),
        ("why pod -o json web-0", "web-0", False),
        ("report pod -o html --cluster east default/web-0", "default/web-0", False),
        ("why web-0 -nshop", "web-0", True),
        ("why web-0 --namespace=shop", "web-0", True),
        ("why -- -n", "", False),
        ("why pod -- -n", "-n", False),
        ("tap --policy a/b", "", False),
        ("why web-0 --nonsense", "", False),
    ],
)
def test_the_pod_is_what_the_command_takes_for_it_and_no_options_value(typed: str, pod: str, named: bool) -> None:
    read = read_arguments(typed.split(), main)
    assert (read.pod, read.names_namespace) == (pod, named)


class Context:
    """A kubectl whose context names a namespace."""

    def namespace(self) -> str:
        return "shop"


@pytest.mark.parametrize(
    ("typed", "namespace"),
    [
        ("why pod --attempt 3 default/web-0", ()),
        ("report pod -o html default/web-0", ()),
        ("why pod -o json 1f3c0a52-0000-4000-8000-000000000001", ()),
        ("why pod -o json web-0", ("--namespace", "shop")),
        ("tap --policy a/b", ("--namespace", "shop")),
    ],
)
def test_the_contexts_namespace_is_that_of_a_pod_without_one(typed: str, namespace: tuple[str, ...]) -> None:
    read = read_arguments(typed.split(), main)
    within = _in_namespace(read.pod, list(read.rest), Context())  # type: ignore[arg-type] # all that is asked of it
    assert tuple(within) == (*namespace, *read.rest)


def test_a_command_that_was_taken_apart_still_knows_h() -> None:
    @click.group(context_settings={"help_option_names": ["-h", "--help"]})
    def group() -> None:
        """A group."""

    @group.command()
    def ask() -> None:
        """Asks."""

    read_arguments(["ask"], group)
    assert "-h, --help" in CliRunner().invoke(group, ["ask", "-h"]).output
