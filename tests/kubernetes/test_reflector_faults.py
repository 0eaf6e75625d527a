"""What a real API server can't be made to do at will, said byte by byte: a reflector comes through it."""

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from podtrail_kubernetes.errors import LONGEST_RETRY_AFTER, StatusError
from podtrail_kubernetes.reflector import (
    Change,
    Deleted,
    Listed,
    ListWatch,
    Reflector,
    ReflectorTiming,
)
from podtrail_kubernetes.rest_client import RestClient

PODS = "/api/v1/pods"
QUICK = ReflectorTiming(first_back_off=0.001, longest_back_off=0.01)
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def says(code: int, body: Any, **headers: str) -> Answer:
    """A whole answer."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        text = json.dumps(body).encode()
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {code} X\r\nContent-Length: {len(text)}\r\n{extra}\r\n".encode() + text)

    return answer


def lists(*items: Any, version: str, token: str = "") -> Answer:
    metadata = {"resourceVersion": version, "continue": token}
    return says(200, {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items})


def watches(*events: Any, end: bytes | None = None, after: asyncio.Event | None = None) -> Answer:
    """A watch: after its events it stays silent, or (`after` something) says `end` and hangs up."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in events:
            line = json.dumps(event).encode() + b"\n"
            writer.write(b"%x\r\n%s\r\n" % (len(line), line))
        if end is not None:
            if after is not None:
                await after.wait()
            writer.write(end)
            writer.close()

    return answer


ENDS = b"0\r\n\r\n"
BREAKS_OFF = b'40\r\n{"type":"MODI'


def hangs_up(writer: asyncio.StreamWriter) -> Awaitable[None]:
    writer.transport.abort()
    return asyncio.sleep(0)


def pod(name: str, version: str, uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "resourceVersion": version}}


def event(kind: str, *arguments: str) -> dict[str, Any]:
    return {"type": kind, "object": pod(*arguments)}


def bookmark(version: str) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": version}}}


def status(code: int, reason: str, message: str = "no") -> dict[str, Any]:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


class Story:
    """A reflector on a server that follows a script: what it was given, and what it asked for."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)
        self._asked = asyncio.Condition()
        self._changes: asyncio.Queue[Change] = asyncio.Queue()
        self._writers: list[asyncio.StreamWriter] = []
        self.asked: list[dict[str, str]] = []
        self.authorization: list[str] = []
        self.exhausted = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        while not writer.is_closing():
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            line, *headers = head.splitlines()
            self.asked.append({name: values[0] for name, values in parse_qs(urlsplit(line.split()[1]).query).items()})
            self.authorization += [h.partition(": ")[2] for h in headers if h.lower().startswith("authorization:")]
            async with self._asked:
                self._asked.notify_all()
            answer = next(self._answers, None)
            if answer is None:
                self.exhausted.set()
                return  # silence
            await answer(writer)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Returns when a request made it true."""
        async with self._asked:
            await self._asked.wait_for(condition)

    def close(self) -> None:
        for writer in self._writers:
            writer.close()

    async def take(self, change: Change) -> None:
        await self._changes.put(change)

    async def next(self) -> Change:
        return await asyncio.wait_for(self._changes.get(), 60)

    async def told(self, count: int) -> list[tuple[str, str]]:
        """The next changes: their kind, name and resourceVersion."""
        found = []
        for _ in range(count):
            change = await self.next()
            assert not isinstance(change, Listed)
            metadata = change.object["metadata"]
            found.append((type(change).__name__, f"{metadata['name']}@{metadata['resourceVersion']}"))
        return found

    @property
    def versions(self) -> list[str]:
        """Where each watch began, `list` for a list."""
        return [query["resourceVersion"] if "watch" in query else "list" for query in self.asked]


@asynccontextmanager
async def story(
    *answers: Answer, script: Iterable[Answer] = (), timing: ReflectorTiming = QUICK, kubeconfig: Path | None = None
) -> AsyncIterator[tuple[Story, Reflector]]:
    it = Story(script or answers)
    server = await asyncio.start_server(it.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = await RestClient.open(kubeconfig, url, agent="podtrail-tests")
    reflector = Reflector(client, ListWatch(PODS), random.Random(1), timing=timing)
    task = asyncio.create_task(reflector.run(it.take))
    try:
        async with asyncio.timeout(120):
            yield it, reflector
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])
        await client.close()
        it.close()
        server.close()


async def test_a_watch_goes_on_where_a_bookmark_said_it_was() -> None:
    async with story(lists(version="5"), watches(bookmark("9"), end=ENDS)) as (it, _):
        assert await it.next() == Listed([])
        await it.exhausted.wait()
        assert it.versions == ["list", "5", "9"]
        assert it.asked[1]["allowWatchBookmarks"] == "true"


async def test_an_expired_version_in_the_stream_has_everything_listed_and_compared() -> None:
    before = [pod("kept", "1"), pod("changed", "2"), pod("gone", "3"), pod("recreated", "4", "old")]
    after = [pod("kept", "1"), pod("changed", "7"), pod("recreated", "8", "new"), pod("new", "9")]
    expired = {"type": "ERROR", "object": status(410, "Expired", "The resourceVersion is too old.")}
    async with story(lists(*before, version="5"), watches(expired, end=ENDS), lists(*after, version="9")) as (
        it,
        r,
    ):
        assert isinstance(await it.next(), Listed)
        gone, old = await it.next(), await it.next()
        assert gone == Deleted(pod("gone", "3"), inferred=True)
        assert old == Deleted(pod("recreated", "4", "old"), inferred=True)
        assert await it.told(3) == [("Modified", "changed@7"), ("Added", "recreated@8"), ("Added", "new@9")]
        await it.exhausted.wait()
        assert it.versions == ["list", "5", "list", "9"]
        assert (r.counters.expired, r.counters.failures, r.last_failure) == (1, 0, None)


async def test_an_expired_version_at_the_start_of_a_watch_has_everything_listed() -> None:
    async with story(lists(version="5"), says(410, status(410, "Expired")), lists(pod("a", "6"), version="7")) as (
        it,
        _,
    ):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]


async def test_an_expired_continue_token_starts_the_list_anew() -> None:
    a, b = pod("a", "1"), pod("b", "2")
    halves = lists(a, version="5", token="rest"), says(410, status(410, "Expired"))
    async with story(*halves, lists(a, version="6", token="rest"), lists(b, version="6")) as (it, reflector):
        listed = await it.next()
        assert isinstance(listed, Listed)
        assert [each["metadata"]["name"] for each in listed.objects] == ["a", "b"]
        assert [query.get("continue") for query in it.asked[:4]] == [None, "rest", None, "rest"]
        assert reflector.counters.expired == 1


async def test_a_server_that_always_says_expired_is_not_asked_without_pause() -> None:
    expired = [answer for _ in range(3) for answer in (lists(version="5"), says(410, status(410, "Expired")))]
    slow, loop = ReflectorTiming(first_back_off=0.2, longest_back_off=0.2), asyncio.get_running_loop()
    async with story(*expired, timing=slow) as (it, _):
        await it.until(lambda: len(it.asked) == 4)
        start = loop.time()
        await it.until(lambda: len(it.asked) == 5)
        assert loop.time() - start > 0.19


async def test_a_half_open_connection_is_given_up_and_what_was_missed_is_told() -> None:
    silent = ReflectorTiming(idle=0.05, first_back_off=0.001, longest_back_off=0.01)
    script = lists(version="5"), watches(), lists(pod("a", "6"), version="7")
    async with story(*script, timing=silent) as (it, reflector):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]
        assert reflector.counters.failures >= 1


async def test_a_line_that_breaks_off_is_asked_for_again() -> None:
    taken = asyncio.Event()
    script = lists(version="5"), watches(event("ADDED", "a", "6"), end=BREAKS_OFF, after=taken)
    async with story(*script, watches(event("MODIFIED", "a", "8"))) as (it, _):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]
        taken.set()
        assert await it.told(1) == [("Modified", "a@8")]
        assert it.versions == ["list", "5", "6"]


async def test_a_watch_that_breaks_off_before_anything_came_has_everything_listed() -> None:
    script = lists(version="5"), watches(end=BREAKS_OFF), lists(pod("a", "6"), version="6")
    async with story(*script) as (it, _):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]


async def test_a_connection_that_is_reset_before_an_answer_is_tried_again() -> None:
    async with story(hangs_up, lists(version="5"), hangs_up, watches(event("ADDED", "a", "6"))) as (it, _):
        assert await it.next() == Listed([])
        assert await it.told(1) == [("Added", "a@6")]
        assert "list" not in it.versions[2:]


async def test_rubbish_in_the_stream_ends_the_watch_and_not_the_reflector() -> None:
    rubbish = [{"type": "ADDED"}, [], {"type": "WAT", "object": pod("a", "6")}, {"type": "ADDED", "object": {}}]
    script = [answer for each in rubbish for answer in (lists(version="5"), watches(each, end=ENDS))]
    async with story(*script, lists(pod("a", "6"), version="6")) as (it, reflector):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]
        assert reflector.counters.failures == len(rubbish)


async def test_a_throttled_watch_comes_again_no_earlier_than_the_server_says() -> None:
    throttled = says(429, status(429, "TooManyRequests"), Retry_After="1")
    async with story(lists(version="5"), throttled, watches(event("ADDED", "a", "6"))) as (it, _):
        await it.next()
        start = asyncio.get_running_loop().time()
        assert await it.told(1) == [("Added", "a@6")]
        assert asyncio.get_running_loop().time() - start > 0.95
        assert it.versions == ["list", "5", "5"]


async def test_events_that_repeat_or_contradict_what_is_known_tell_no_nonsense() -> None:
    events = [
        event("ADDED", "a", "1"),  # known from the list
        event("ADDED", "a", "6"),  # a change, whatever its name
        event("DELETED", "b", "7"),  # never heard of
        event("MODIFIED", "c", "8"),  # new, whatever its name
        event("MODIFIED", "a", "9", "another"),  # its deletion was missed
        event("DELETED", "a", "10", "uid-a"),  # and comes late
        event("DELETED", "c", "11"),
    ]
    async with story(lists(pod("a", "1"), version="5"), watches(*events)) as (it, reflector):
        await it.next()
        assert await it.told(5) == [
            ("Modified", "a@6"),
            ("Added", "c@8"),
            ("Deleted", "a@6"),
            ("Added", "a@9"),
            ("Deleted", "c@11"),
        ]
        assert reflector.counters.repeated == 3


async def test_a_token_that_was_rotated_is_read_again_when_the_old_one_is_refused(tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    token.write_text("old\n")
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "it",
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
                "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "it", "user": {"tokenFile": str(token)}}],
            }
        )
    )

    async def rotated(writer: asyncio.StreamWriter) -> None:
        await asyncio.to_thread(token.write_text, "new\n")
        await says(401, status(401, "Unauthorized"))(writer)

    script = itertools.chain([rotated], itertools.repeat(says(401, status(401, "Unauthorized"))))
    async with story(script=script, kubeconfig=kubeconfig) as (it, _):
        await it.until(lambda: "Bearer new" in it.authorization)
        assert it.authorization[0] == "Bearer old"


async def test_one_object_that_does_not_say_who_it_is_is_passed_over_alone() -> None:
    named = pod("a", "1")
    nobodies: list[Any] = [
        None,
        7,
        "x",
        [],
        {},
        {"metadata": None},
        {"metadata": {"name": "b"}},
        {"metadata": {"name": [], "uid": "u", "resourceVersion": "1"}},
        {"metadata": {"name": "b", "uid": {}, "resourceVersion": "1"}},
        {"metadata": {"name": "b", "namespace": ["n"], "uid": "u", "resourceVersion": "1"}},
    ]
    no_names: list[Any] = [{}, [1], "", None, 10**400]
    events = [
        {"type": kind, "object": {"metadata": {"name": name, "uid": "u", "resourceVersion": "6"}}}
        for kind in ("ADDED", "MODIFIED", "DELETED")
        for name in no_names
    ]
    async with story(lists(*nobodies, named, version="5"), watches(*events, event("ADDED", "c", "8"))) as (
        it,
        ours,
    ):
        assert await it.next() == Listed([{**named, "kind": "Pod", "apiVersion": "v1"}])
        assert await it.told(1) == [("Added", "c@8")]
        assert ours.counters.unidentified == len(nobodies) + len(events)
        assert ours.counters.failures == 0
        assert it.versions == ["list", "5"]


def raw(body: bytes) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    return answer


async def test_answers_and_events_nested_beyond_measure_are_failures_like_any_other() -> None:
    deep = b'{"type":"ADDED","object":' + b"[" * 200_000 + b"]" * 200_000 + b"}"

    async def watch(writer: asyncio.StreamWriter) -> None:
        line = deep + b"\n"
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(line), line))

    script = (raw(deep), lists(version="5"), watch, lists(pod("a", "6"), version="6"))
    async with story(*script) as (it, reflector):
        await it.next()
        assert await it.told(1) == [("Added", "a@6")]
        assert reflector.counters.failures == 2


def test_a_refusal_that_names_an_absurd_time_is_asked_again_in_time() -> None:
    for absurd in ("9" * 400, str(10**9)):
        refused = StatusError.from_answer(429, {"Retry-After": absurd}, b"[" * 200_000)
        assert refused.retry_after is None or refused.retry_after <= LONGEST_RETRY_AFTER
    told = StatusError.from_status({"code": 429, "details": {"retryAfterSeconds": 10**400}})
    assert told.retry_after == LONGEST_RETRY_AFTER


async def test_an_answer_without_end_is_given_up_and_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podtrail_kubernetes.rest_client.MAX_ANSWER", 1 << 20)

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                await writer.drain()

    async with story(endless, lists(pod("a", "6"), version="6")) as (it, reflector):
        assert isinstance(await it.next(), Listed)
        assert reflector.counters.failures == 1
