"""The `scheduler` receiver beside a stock kube-scheduler: what files, standard input and its metrics tell, live."""

import asyncio
import contextlib
import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from podtrail_receivers.scheduler import FACTORY
from podtrail_receivers.scheduler.kube_scheduler.config import LogConfig
from podtrail_receivers.scheduler.kube_scheduler.log import LogSource
from pydantic import ValidationError

from podtrail.component import Context, Metrics, ObservedPod, StartError
from podtrail.reconstruction import read_attempts
from tests.forks import Fork, environment
from tests.receivers.sink import DEADLINE, Sink, until

DATA = Path(__file__).parents[1] / "data" / "kube-scheduler"
LEGS = ("v2-text", "v5-json", "v10-text")


def log_of(leg: str) -> bytes:
    return gzip.decompress((DATA / f"{leg}.log.gz").read_bytes())


def counted(leg: str) -> Counter[str]:
    """Attempts by result as the scheduler counted them."""
    counts: Counter[str] = Counter()
    for one in read_attempts((DATA / f"{leg}.prom").read_bytes().splitlines()):
        counts[one.result] += one.attempts
    return +counts


def receiver(context: Context | None = None, **settings: Any) -> Any:
    config = FACTORY.Config.model_validate({"kube_scheduler": settings})
    return FACTORY.create(config, context or Context(id="scheduler"))


@asynccontextmanager
async def running(sink: Sink, context: Context | None = None, **settings: Any) -> AsyncIterator[None]:
    async with receiver(context, **settings) as source:
        work = asyncio.create_task(source.run(sink))
        try:
            yield
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


async def read(sink: Sink, context: Context | None = None, **log: Any) -> None:
    async with receiver(context, log={"follow": False} | log) as source:
        assert source.finite
        async with asyncio.timeout(DEADLINE):
            await source.run(sink)


def value(context: Context, name: str, **labels: str) -> float:
    wanted = ",".join(sorted(f"{key}={text}" for key, text in labels.items()))
    return context.metrics.snapshot().get(name, {}).get(wanted, 0)


@pytest.mark.parametrize("leg", LEGS)
async def test_a_log_that_is_read_once_gives_every_attempt_that_the_scheduler_counted(leg: str, tmp_path: Path) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(log_of(leg))

    sink, context = Sink(refusals=2), Context(id="s")
    await read(sink, context, include=[str(tmp_path / "*.log")])
    assert sink.results == counted(leg)
    assert len(set(sink.trace_ids)) == len(sink.trace_ids)
    for result, attempts in counted(leg).items():
        rebuilt = value(context, "podtrail_receiver_kube_scheduler_attempts_total", receiver="s", result=result)
        assert rebuilt == attempts
    assert value(context, "otelcol_receiver_refused_spans", receiver="s", transport="inprocess") > 0


@pytest.mark.parametrize(("zone", "hours"), [("", 0), ("+02:00", 2), ("Asia/Shanghai", 8)])
async def test_the_zone_of_local_times_is_set_or_the_receiver_warns(
    zone: str, hours: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(log_of("v2-text"))
    ends = []
    for each in ("UTC", zone):
        caplog.clear()
        sink = Sink()
        await read(sink, include=[str(tmp_path / "*.log")], timezone=each)
        ends.append(max(span.end for span in sink.spans))
    assert ends[0] - ends[1] == hours * 3600 * 10**9
    assert ("times without a zone" in caplog.text) == (not zone)


async def test_two_that_read_logs_of_two_schedulers_count_each_its_own(tmp_path: Path) -> None:
    (tmp_path / "one.log").write_bytes(log_of("v5-json"))
    (tmp_path / "other.log").write_bytes(log_of("v2-text"))
    metrics = Metrics()

    for name, leg in (("one", "v5-json"), ("other", "v2-text")):
        context = Context(id=name, metrics=metrics)
        await read(Sink(), context, include=[str(tmp_path / f"{name}.log")])
        for each, of_each in (("one", "v5-json"), (name, leg)):
            for result, attempts in counted(of_each).items():
                total = "podtrail_receiver_kube_scheduler_attempts_total"
                assert value(context, total, receiver=each, result=result) == attempts


async def test_a_log_that_grows_in_pieces_and_is_rotated_meanwhile_gives_the_same(tmp_path: Path) -> None:
    path, whole = tmp_path / "kube-scheduler.log", log_of(leg := "v5-json")
    cut = whole.rindex(b"\n", 0, len(whole) // 2) + 1

    sink, context = Sink(), Context(id="s")
    path.touch()
    async with running(sink, context, log={"include": [f"{path}*"], "poll_interval": "10ms"}):
        with path.open("ab", buffering=0) as file:
            for at in range(0, cut, 50_021):
                file.write(whole[at : min(at + 50_021, cut)])
                await asyncio.sleep(0)
        path.rename(tmp_path / "kube-scheduler.log.1")
        path.write_bytes(whole[cut:])
        await sink.until(lambda: sink.results == counted(leg))


async def test_a_log_cut_short_by_copy_and_truncate_is_read_on_from_its_beginning(tmp_path: Path) -> None:
    path, lines = tmp_path / "kube-scheduler.log", log_of("v2-text").splitlines(keepends=True)
    half = len(lines) // 2

    sink, context = Sink(), Context(id="s")
    path.write_bytes(b"".join(lines[:half]))
    async with running(sink, context, log={"include": [str(path)], "poll_interval": "10ms"}):
        read_so_far = {"receiver": "s", "source": "log"}

        def lines_read() -> float:
            name = "podtrail_receiver_kube_scheduler_lines_total"
            kinds = ("used", "other", "continued", "unknown")
            return sum(value(context, name, kind=kind, **read_so_far) for kind in kinds)

        await until(lambda: lines_read() >= half)
        os.truncate(path, 0)
        for part in (lines[half : half + 1], lines[half + 1 :]):
            before = lines_read()
            with path.open("ab") as file:
                file.writelines(part)
            await until(lambda before=before: lines_read() > before)  # type: ignore[misc]
        await sink.until(lambda: sink.results == counted("v2-text"))


@pytest.mark.parametrize(
    "framed",
    [
        lambda line: b"2026-11-21T11:12:05.000000001Z stderr F " + line,
        lambda line: json.dumps(
            {"log": line.decode() + "\n", "stream": "stderr", "time": "2026-11-21T11:12:05Z"}
        ).encode(),
    ],
    ids=["CRI", "Docker"],
)
async def test_a_containers_log_is_unwrapped(framed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    lines = [framed(line) for line in log_of("v2-text").splitlines()]
    (tmp_path / "0.log").write_bytes(b"\n".join(lines) + b"\n")

    sink = Sink()
    await read(sink, include=[str(tmp_path / "0.log")])
    assert sink.results == counted("v2-text")


async def test_two_replicas_and_a_restart_tell_the_same_story_once_however_often_they_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(log_of("v5-json"))
    told = []
    for tick in (60.0, 0.2, 0.0):
        monkeypatch.setattr("podtrail_receivers.scheduler.kube_scheduler.receiver._TICK", tick)
        sink = Sink()
        await read(sink, include=[str(tmp_path / "*.log")])
        told.append(sorted(sink.trace_ids))
    assert told[0] == told[1] == told[2]


async def test_only_the_profiles_that_are_asked_for_are_told(tmp_path: Path) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(log_of("v5-json"))

    sink = Sink()
    log = {"follow": False, "include": [str(tmp_path / "*.log")]}
    async with receiver(log=log, profiles=["nobody"]) as source:
        await source.run(sink)
    assert not sink.roots


async def test_attempts_of_unknown_profile_are_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(log_of("v2-text"))
    log, sinks = {"follow": False, "include": [str(tmp_path / "*.log")]}, (Sink(), Sink())
    for sink, profiles in zip(sinks, ([], ["default-scheduler"]), strict=True):
        async with receiver(log=log, profiles=profiles) as source:
            await source.run(sink)
    every, chosen = sinks
    assert chosen.trace_ids == every.trace_ids != []
    assert all("profile: not known" in str(root["podtrail.inferred"]) for root in chosen.roots)


async def test_what_is_known_of_a_log_ends_where_it_was_looked_at_last(tmp_path: Path) -> None:
    """Whatever time it is by now: the process may have been stopped since."""
    log = tmp_path / "kube-scheduler.log"
    log.write_bytes(log_of("v2-text"))
    source = LogSource(LogConfig.model_validate({"include": [str(log)], "poll_interval": "1h"}), Context("scheduler"))
    began = time.time_ns()
    await source.open()
    looking = asyncio.create_task(_read_all(source))
    await source.caught_up.wait()
    assert source.read_until is not None
    assert began <= source.read_until <= time.time_ns()
    looking.cancel()
    await asyncio.wait([looking])
    source.close()


async def _read_all(source: LogSource) -> None:
    async for _ in source.pieces():
        pass


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_standard_input_is_read_by_a_running_podtrail(through: str, tmp_path: Path) -> None:
    output, log = tmp_path / "out.jsonl", tmp_path / "in.log"
    log.write_bytes(log_of("v2-text"))
    config = tmp_path / "config.yaml"
    config.write_text(
        "receivers: {scheduler: {kube_scheduler: {log: {include: ['-']}}}}\n"
        f"exporters: {{recording: {{path: {output}}}}}\n"
        "service:\n"
        "  telemetry: {metrics: {address: 127.0.0.1:0}}\n"
        "  pipelines: {traces: {receivers: [scheduler], exporters: [recording]}}\n"
    )
    command = ["podtrail", "run", "--config", str(config), "--exit-when-done"]
    reading, writing = os.pipe()
    with log.open("rb") as file, (tmp_path / "told.log").open("wb") as told:
        given = reading if through == "pipe" else file.fileno()
        run = Fork(command, tmp_path, environment({}), (given, told.fileno(), told.fileno()))
        os.close(reading)
        with open(writing, "wb") as pipe, contextlib.suppress(BrokenPipeError):
            pipe.write(log_of("v2-text"))
    assert run.wait(DEADLINE) == 0
    assert "323 Success, 125 Unschedulable, 11 Error" in (tmp_path / "told.log").read_text()
    assert output.stat().st_size > 0


def test_what_each_source_would_tell_is_said_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(b"")
    with caplog.at_level("INFO"):
        asyncio.run(read(Sink(), include=[str(tmp_path / "*.log")]))
    assert "kube-scheduler is seen through log: every attempt from -v=2 on" in caplog.text
    assert "not configured: watch::pods, which would tell uids" in caplog.text


async def test_a_log_that_is_not_there_is_waited_for_only_when_followed(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"kube_scheduler::log::include: no file matches .*nothing\.log"):
        await read(Sink(), include=[str(tmp_path / "nothing.log")])
    sink = Sink()
    async with running(sink, log={"include": [str(tmp_path / "*.log")], "poll_interval": "10ms"}):
        (tmp_path / "late.log").write_bytes(log_of("v2-text"))
        await sink.until(lambda: sink.results == counted("v2-text"))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "nothing tells of attempts: give log, watch or both"),
        ({"log": {"include": []}}, "at least 1 item"),
        ({"log": {"include": ["-", "a"]}}, "standard input and stands alone"),
        ({"log": {"include": ["a"], "timezone": "Mars/Base"}}, "is not a time zone"),
        ({"watch": {"pods": False, "events": False}}, "watch pods, events or both"),
        ({"log": {"include": ["a"]}, "metrics": {"endpoint": "localhost:10259"}}, "is no URL: write for example https"),
        ({"watch": {}, "kubernetes": {"kubeconfig": "a"}}, "auth_type: kubeConfig"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        FACTORY.Config.model_validate({"kube_scheduler": settings})


def test_a_simulations_keys_beside_kube_scheduler_are_refused() -> None:
    with pytest.raises(ValidationError, match="speed: a simulation's, of no use with kube_scheduler"):
        FACTORY.Config.model_validate({"kube_scheduler": {"log": {"include": ["a"]}}, "speed": 1})


@asynccontextmanager
async def page(
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]], path: str = "/metrics"
) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get(path, answer)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}{path}"
    finally:
        await runner.cleanup()


async def test_attempts_that_nothing_tells_of_are_counted_across_restarts_of_the_scheduler(tmp_path: Path) -> None:
    (tmp_path / "kube-scheduler.log").write_bytes(b"")
    (tmp_path / "token").write_text("secret\n")
    answers = [5, None, 12]  # a page that fails in between

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer secret"
        attempts = answers.pop(0) if len(answers) > 1 else answers[0]
        if attempts is None:
            return web.Response(status=503)
        labels = 'profile="default-scheduler",result="unschedulable"'
        return web.Response(text=f"scheduler_schedule_attempts_total{{{labels}}} {attempts}\n")

    context = Context(id="s")
    name, labels = "podtrail_receiver_kube_scheduler_attempts_untold", {"receiver": "s", "result": "Unschedulable"}
    async with page(answer) as endpoint:
        metrics = {"endpoint": endpoint, "collection_interval": "10ms", "token_file": str(tmp_path / "token")}
        async with running(Sink(), context, log={"include": [str(tmp_path / "*.log")]}, metrics=metrics):
            await until(lambda: value(context, name, **labels) == 7)
            answers.append(3)  # the scheduler began anew: what it counted before is not held against the log
            await until(lambda: value(context, name, **labels) == 0)


async def test_what_was_told_before_a_restart_is_not_told_again_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail_receivers.scheduler.kube_scheduler.receiver._CHECKPOINT_PERIOD", 0.01)
    path, kept, lines = tmp_path / "kube-scheduler.log", tmp_path / "checkpoint.json", log_of("v5-json").splitlines()
    # The first half has just been written: what a checkpoint says is about now.
    half = len(lines) // 2
    moved = time.time() * 1000 - json.loads(lines[half])["ts"]
    redated = [re.sub(rb'"ts":([0-9.]+)', lambda ts: b'"ts":%f' % (float(ts[1]) + moved), line) for line in lines]
    settings: dict[str, Any] = {"log": {"include": [str(path)], "poll_interval": "10ms"}, "checkpoint": str(kept)}

    first, second = Sink(), Sink()
    path.write_bytes(b"\n".join(redated[:half]) + b"\n")
    async with running(first, **settings):
        await first.until(lambda: bool(first.roots))
        await until(kept.exists)
    with path.open("ab") as file:
        file.write(b"\n".join(redated[half:]) + b"\n")
    async with running(second, **settings):
        await second.until(lambda: first.results + second.results == counted("v5-json"))
    assert first.roots
    assert not set(first.trace_ids) & set(second.trace_ids)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"{", True),
        (b"[]", True),
        (b'{"version": 99}', True),
        (b'{"version": 1, "toldUntilUnixNano": "x"}', True),
        (b"{}", False),
        (b'{"version": 1, "toldUntilUnixNano": "1", "pods": null}', False),
        (b'{"version": 1, "toldUntilUnixNano": "1", "pods": 5}', False),
        (b'{"version": 1, "toldUntilUnixNano": "1", "pods": [{"since": Infinity}]}', False),
        (b'{"version": 1, "toldUntilUnixNano": Infinity}', False),
        (b'{"version": 1, "toldUntilUnixNano": "%d"}' % 2**62, False),
    ],
)
def test_a_checkpoint_that_makes_no_sense_keeps_nothing_from_being_told(
    content: bytes, told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    read_beside(path, tmp_path)
    if told:
        assert "checkpoint: what it says is passed over" in caplog.text


def read_beside(checkpoint: Path, folder: Path) -> None:
    """Read a log with this checkpoint, and find all its attempts."""
    (folder / "kube-scheduler.log").write_bytes(log_of("v2-text"))

    async def main() -> None:
        sink = Sink()
        log = {"follow": False, "include": [str(folder / "*.log")]}
        async with asyncio.timeout(DEADLINE), receiver(log=log, checkpoint=str(checkpoint)) as source:
            await source.run(sink)
        assert sink.results == counted("v2-text")

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["fifo", "device", "directory", "nested"])
def test_a_checkpoint_that_can_be_none_is_passed_over_and_left_alone(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "checkpoint"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "directory":
            path.mkdir()
        case _:
            path.write_bytes(b"[" * 200_000)
    read_beside(path, tmp_path)
    assert f"{path}: what it says is passed over" in caplog.text
    if kind != "nested":
        assert not path.is_file()
        assert f"can't write {path}" in caplog.text


async def test_hostile_objects_in_lists_and_watches_end_no_watch(tmp_path: Path) -> None:
    def pod(name: Any, **parts: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "7"}
        return {"kind": "Pod", "metadata": metadata, **parts}

    odd: list[Any] = [None, 7, [], "x", {}, {"metadata": None}, {"metadata": {"name": {}, "uid": [], "namespace": 5}}]
    shapes: list[Any] = [None, 7, "x", [], [None], [7], [{}], [{"name": None}], [{"name": {}}], {}]
    odd += [pod(f"spec-{number}", spec=each, status=each) for number, each in enumerate(shapes)]
    odd += [pod(f"gates-{number}", spec={"schedulingGates": each}) for number, each in enumerate(shapes)]
    good = pod("good", spec={"schedulingGates": [{"name": "example.com/wait"}]})

    async def answer(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.json_response({"kind": "PodList", "metadata": {"resourceVersion": "5"}, "items": odd})
        response = web.StreamResponse()
        await response.prepare(request)
        for each in [*odd[7:], good]:
            await response.write(json.dumps({"type": "MODIFIED", "object": each}).encode() + b"\n")
        await over.wait()
        return response

    over = asyncio.Event()

    told: list[Any] = []
    context = Context(id="s", tell=told.append)
    kubeconfig = tmp_path / "kubeconfig"
    kubernetes = {"auth_type": "kubeConfig", "kubeconfig": str(kubeconfig)}
    watch = {"pods": True, "nodes": False, "events": False}
    async with page(answer, "/api/v1/pods") as pods:
        kubeconfig.write_text(
            "{apiVersion: v1, kind: Config, current-context: c, users: [{name: u, user: {}}],"
            f" clusters: [{{name: c, cluster: {{server: '{pods.removesuffix('/api/v1/pods')}'}}}}],"
            " contexts: [{name: c, context: {cluster: c, user: u}}]}"
        )
        async with running(Sink(), context, watch=watch, kubernetes=kubernetes):
            await until(lambda: any(isinstance(fact, ObservedPod) and fact.name == "good" for fact in told))
        over.set()


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("endless", "the page is larger than 1 MiB"),
        ("token", "codec can't decode"),
        ("header", "(?i)header"),
        ("html", ""),
    ],
)
async def test_a_metrics_page_that_is_none_is_told_and_tried_again(
    trouble: str, words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail_receivers.scheduler.kube_scheduler.metrics_page._LARGEST", 1 << 20)
    token, log = tmp_path / "token", tmp_path / "kube-scheduler.log"
    token.write_bytes({"token": b"\xff\xfe", "header": b"a\r\nb: c"}.get(trouble, b"t"))
    log.write_bytes(b"")
    asked = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal asked
        asked += 1
        if trouble != "endless":
            return web.Response(body=b"<html>" + b"\0\xff" * 1000, content_type="text/html")
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    async with page(answer) as endpoint:
        metrics = {"endpoint": endpoint, "token_file": str(token), "collection_interval": "10ms"}
        async with receiver(log={"include": [str(log)]}, metrics=metrics) as source:
            work = asyncio.create_task(source.run(Sink()))
            if words:
                await until(lambda: re.search(words, caplog.text) is not None)
            else:
                await until(lambda: asked > 2)
            assert not work.done()
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
