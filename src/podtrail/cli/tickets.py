"""`podtrail report`: a Pod's story or an incident for a ticket, from a running page or from files."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

import click

from podtrail.cli import completing
from podtrail.cli.reading import Failed, Unusable, skip_shown
from podtrail.cli.running_page import NobodyThere, asking, endpoint_option, get_json, json_object, no_page
from podtrail.cli.why_sources import AnswerOfSource, AskedFiles, ask_page
from podtrail.reports.document import ReportDocument
from podtrail.reports.incident import incident_report
from podtrail.reports.pod import pod_report
from podtrail.story import Library, WhyQuestion, answer_query, visible
from podtrail.story.incident import tell_incident
from podtrail.story.time_range import TimeRange

Kind = Literal["markdown", "html"]
_ENDINGS: Final[Mapping[Kind, str]] = {"markdown": "md", "html": "html"}
_BEGINS: Final = ("# ", "<!doctype html>")

_output = click.option(
    "-o",
    "--output",
    "kind",
    type=click.Choice(list(_ENDINGS)),
    default="markdown",
    show_default=True,
    help="Markdown for a ticket, or one HTML file.",
)
_files = click.argument("files", nargs=-1, metavar="[RECORDING...]", type=click.Path(path_type=Path))


class WrittenReport(NamedTuple):
    """A report as it is printed."""

    text: str

    def as_json(self) -> dict[str, Any]:
        """Return it as an answer."""
        return {"report": self.text}


@click.group("report")
def command() -> None:
    """Write a Pod's story or an incident for a ticket: as Markdown, or as one HTML file.

    A running page is asked, or recordings. Exit code 0: written; 1: not known, or nobody to ask; 2: usage.
    """


@command.command("pod")
@click.argument("pod", metavar="[NAMESPACE/]NAME|UID", shell_complete=completing.pods)
@_files
@click.option(
    "-n",
    "--namespace",
    shell_complete=completing.namespaces,
    help="The Pod's namespace, where several have one of that name.",
)
@click.option("--cluster", default="", help="The Pod's cluster, where several have one of that name.")
@_output
@endpoint_option
def pod(pod: str, files: tuple[Path, ...], namespace: str | None, cluster: str, kind: Kind, endpoint: str) -> None:
    """Write a Pod's story: why it waits, who said no, its life, attempts and latest trace."""
    if namespace is not None and "/" in pod:
        raise click.UsageError("the namespace is given twice: NAMESPACE/NAME and -n")
    place = f"{namespace}/{pod}" if namespace is not None else pod
    try:
        question = WhyQuestion.read({"pod": place, "cluster": cluster})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if files:
        _print(_of_files(files, PodReportQuestion(question, kind)))
        return
    try:
        reply = ask_page(endpoint, question, ", or name recordings")
    except NobodyThere as problem:
        raise Failed(str(problem)) from None
    told = reply.told
    key = told["pod"]["key"] if isinstance(told.get("pod"), dict) else ""
    if "error" in told or not isinstance(key, str) or not key:
        raise Failed(f"{_error(told)} ({reply.whom})")
    _print(_Page(endpoint).text(f"/pods/{quote(key, safe='', errors='replace')}/report.{_ENDINGS[kind]}", {}))


@command.command("incident")
@_files
@click.option("--from", "since", default="", metavar="TIME", help="14:02 (UTC), 30m (so long ago), an ISO 8601 moment.")
@click.option("--to", "until", default="", metavar="TIME", help="As --from; now, or the end of what is held.")
@_output
@endpoint_option
def incident(files: tuple[Path, ...], since: str, until: str, kind: Kind, endpoint: str) -> None:
    """Write what happened in a range of time: attempts, reasons, Pods, changes, plugins, nodes.

    Without --from it is the half hour before --to.
    """
    if files:
        _print(_of_files(files, IncidentQuestion(since, until, kind)))
        return
    query = {name: value for name, value in (("from", since), ("to", until)) if value}
    _print(_Page(endpoint).text(f"/incident.{_ENDINGS[kind]}", query, "/api/v1/incident"))


@dataclass(frozen=True, slots=True)
class PodReportQuestion:
    """A Pod's report, asked of files."""

    question: WhyQuestion
    kind: Kind

    def query(self) -> Mapping[str, str]:
        """Return the Pod that is meant."""
        return self.question.query()

    def answer(self, library: Library, now: int, *, live: bool) -> AnswerOfSource:
        """Return the report, or why there is none."""
        answer = answer_query(library, self.question, now, live=live)
        if answer.pod is None:
            return answer
        return WrittenReport(written(pod_report(library, answer.pod, now, live=live), self.kind))


@dataclass(frozen=True, slots=True)
class IncidentQuestion:
    """What happened in a range of time, asked of files."""

    since: str
    until: str
    kind: Kind

    def query(self) -> Mapping[str, str]:
        """Return the range as it was typed."""
        return {"from": self.since, "to": self.until}

    def answer(self, library: Library, now: int, *, live: bool) -> AnswerOfSource:  # noqa: ARG002 - a Question's signature
        """Return the report.

        Raises:
            UsageError: what was typed is no range of time.
        """
        try:
            span = TimeRange.read(self.since, self.until, now)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        stories = library.stories
        return WrittenReport(
            written(incident_report(tell_incident(stories.pods(), span, stories.past.told())), self.kind)
        )


def written(document: ReportDocument, kind: Kind) -> str:
    """Return a report as it is printed."""
    if kind == "html":
        from podtrail.reports.html import to_html

        return to_html(document)
    from podtrail.reports.markdown import to_markdown

    return to_markdown(document)


@dataclass(frozen=True, slots=True)
class _Page:
    """A running page; whoever can't be asked ends the command."""

    endpoint: str

    def json(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        try:
            return get_json(self.endpoint, path, query, otherwise=", or name recordings")
        except NobodyThere as problem:
            raise Failed(str(problem)) from None

    def text(self, path: str, query: Mapping[str, str], words: str = "") -> str:
        """Return what is answered as text; for what can't be `words` is asked, which says why as JSON."""
        try:
            with asking(self.endpoint, path, query, otherwise=", or name recordings") as answer:
                raw = answer.whole()
                if answer.status == 200:
                    return _checked(raw.decode("utf-8", "replace"), self.endpoint)
        except NobodyThere as problem:
            raise Failed(str(problem)) from None
        told = json_object(raw) or (self.json(words, query) if words else {})
        raise (click.UsageError(visible(_error(told))) if "error" in told else Failed(str(no_page(self.endpoint))))


def _checked(text: str, endpoint: str) -> str:
    """Return a report as it came: it begins as one and has no power over a terminal. NobodyThere for anything else."""
    if not text.startswith(_BEGINS) or not all(line.isprintable() for line in text.split("\n")):
        raise no_page(endpoint)
    return text


def _of_files(paths: Sequence[Path], question: PodReportQuestion | IncidentQuestion) -> str:
    try:
        reply = AskedFiles(paths, None, (), skip_shown()).ask(question)
    except (OSError, ValueError) as problem:
        where = f"{problem.filename}: {problem.strerror}" if isinstance(problem, OSError) else str(problem)
        raise Unusable(where) from None
    if "error" in reply.told:
        raise Failed(f"{_error(reply.told)} ({reply.whom})")
    return str(reply.told["report"])


def _error(told: Mapping[str, Any]) -> str:
    said = str(told.get("error", "it is not known"))
    choices = [one for one in told.get("choices") or () if isinstance(one, dict)]
    names = [" ".join(filter(None, (str(one.get("cluster", "")), str(one.get("namespace", ""))))) for one in choices]
    return f"{said}: {', '.join(names)}; say which with -n or --cluster" if names else said


def _print(text: str) -> None:
    click.echo(text, nl=not text.endswith("\n"), file=sys.stdout)
