"""One log in each form in which people save it: all of its lines are found, with their year, and counted once."""

import codecs
import csv
import io
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
import yaml

from podtrail.reconstruction import LineCounts, SchedulerLog, Session, split_lines
from podtrail.reconstruction.calendar import zone_of
from podtrail.reconstruction.scheduler_log import LineMeaning
from podtrail.reconstruction.vocabulary import Kind

LINES = (
    'I0918 21:10:49.000100     812 schedule_one.go:80] "Attempting to schedule pod" pod="shop/web-0"',
    'E0918 21:10:49.100000     812 schedule_one.go:1198] "Error scheduling pod; retrying" err=<',
    '\trunning Bind plugin "DefaultBinder": a\\b',
    '\t\tI0918 21:10:49.100000 1 a.go:1] "Attempting to schedule pod" pod="shop/none"',
    ' > pod="shop/web-0"',
    (
        'I0918 21:10:49.200000     812 trace.go:236] Trace[7]: "Scheduling" namespace:shop,name:web-1 '
        "(18-Sep-2026 21:10:49.010) (total time: 190ms):"
    ),
    'Trace[7]: ---"Computing predicates done" 180ms (21:10:49.190)',
    "Trace[7]: [190.5ms] [190.5ms] END",
    (
        'I0918 21:10:49.300000     812 schedule_one.go:314] "Successfully bound pod to node" pod="shop/web-1" '
        'node="n-1" evaluatedNodes=19 feasibleNodes=15'
    ),
    'I0918 21:10:49.400000     812 other.go:1] "Something else" pod="shop/web-1"',
)
KINDS = [Kind.BEGUN, Kind.FAILED, Kind.TRACE, Kind.BOUND]
ERROR = 'running Bind plugin "DefaultBinder": a\\b\n\tI0918 21:10:49.100000 1 a.go:1] "Attempting to schedule pod" '
STAMP = "2026-09-18T21:10:49.848779631Z"
MICROS = 1_789_765_849_848_779
NANOS = str(MICROS * 1000)
NEAR = 1_600_000_000_000_000_000
"""The log is of 2026; only its envelope says so."""
ONES = {"ts": MICROS / 1000, "caller": "a.go:1", "msg": "Attempting to schedule pod", "v": 3}

Form = Callable[[Sequence[str]], bytes]


def prefixed(prefix: str, suffix: str = "") -> Form:
    return lambda lines: "".join(f"{prefix}{line}{suffix}\n" for line in lines).encode()


def records(record: Callable[[str], object], end: str = "\n") -> Form:
    return lambda lines: end.join(json.dumps(record(line)) for line in lines).encode()


def pretty(document: Callable[[list[object]], object], record: Callable[[str], object]) -> Form:
    return lambda lines: json.dumps(document([record(line) for line in lines]), indent=2).encode()


def export(lines: Sequence[str]) -> bytes:
    entry = "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP={}\n_BOOT_ID=0a\nPRIORITY=6\nMESSAGE={}\n_PID=812\n\n"
    return "".join(entry.format(MICROS, line) for line in lines).encode()


def verbose(lines: Sequence[str]) -> bytes:
    entry = (
        "Fri 2026-09-18 21:10:49.848779 UTC [s=0a1;i=2;b=3;m=4;t=5;x=6]\n    PRIORITY=6\n    MESSAGE={}\n    _PID=812\n"
    )
    return "".join(entry.format(line) for line in lines).encode()


def table(lines: Sequence[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([STAMP, line] for line in lines)
    return out.getvalue().encode()


def docker_parts(lines: Sequence[str]) -> bytes:
    parts = [part for line in lines for part in (line[:40], line[40:] + "\n")]
    return "\n".join(json.dumps({"stream": "stderr", "log": part, "time": STAMP}) for part in parts).encode()


def cri_parts(lines: Sequence[str]) -> bytes:
    return "".join(f"{STAMP} stderr P {line[:40]}\n{STAMP} stderr F {line[40:]}\n" for line in lines).encode()


def grep_context(lines: Sequence[str]) -> bytes:
    marks = [":" if "pod" in line else "-" for line in lines]
    return "".join(
        f"s.log{mark}{at}{mark}{line}\n" for at, (mark, line) in enumerate(zip(marks, lines, strict=True))
    ).encode()


def azure(line: str) -> object:
    return {"category": "kube-scheduler", "properties": {"log": line + "\n", "stream": "stderr"}, "time": STAMP}


def journal(line: str) -> object:
    return {"_PID": "812", "MESSAGE": line, "__REALTIME_TIMESTAMP": str(MICROS), "SYSLOG_IDENTIFIER": "kube-scheduler"}


WITH_YEAR: dict[str, Form] = {
    "CRI": prefixed(f"{STAMP} stderr F "),
    "CRI at +08:00": prefixed("2026-09-19T05:10:49.848779631+08:00 stdout F "),
    "CRI, lines in parts": cri_parts,
    "CRI in JSON of a shipper": records(lambda line: {"date": MICROS / 1e6, "message": f"{STAMP} stderr F {line}"}),
    "CRI in parts in JSON of a shipper": lambda lines: "\n".join(
        json.dumps({"log": part, "stream": "stderr"}) for part in cri_parts(lines).decode().splitlines()
    ).encode(),
    "CRI, found by grep": prefixed(f"/var/log/pods/k/0.log:{STAMP} stderr F "),
    "kubectl logs --timestamps": prefixed(f"{STAMP} "),
    "kubectl logs --prefix --timestamps": prefixed(f"[pod/kube-scheduler-cp/kube-scheduler] {STAMP} "),
    "docker compose logs --timestamps": prefixed(f"kube-scheduler-1  | {STAMP} "),
    "podman logs --timestamps": prefixed("2026-09-18T21:10:49+00:00 "),
    "journalctl -o short-iso": prefixed("2026-09-18T21:10:49+0000 cp1 kube-scheduler[812]: "),
    "journalctl -o short-iso-precise": prefixed("2026-09-18T21:10:49.848779+00:00 cp1 k3s[812]: "),
    "journalctl -o short-full": prefixed("Fri 2026-09-18 21:10:49 UTC cp1 kube-scheduler[812]: "),
    "journalctl -o short-unix": prefixed("1789765849.848779 cp1 kube-scheduler[812]: "),
    "journalctl -o export": export,
    "journalctl -o json": records(journal),
    "journalctl -o json-pretty": lambda lines: "\n".join(
        json.dumps(journal(line), indent=8) for line in lines
    ).encode(),
    "journalctl -o json, as bytes": records(lambda line: {**journal(line), "MESSAGE": list(line.encode())}),  # type: ignore[dict-item]
    "journalctl -o verbose": verbose,
    "journalctl -o json-seq": lambda lines: b"".join(
        b"\x1e" + one + b"\n" for one in records(journal)(lines).splitlines()
    ),
    "journalctl -o json-sse": lambda lines: b"".join(
        b"data: %s\n\n" % one for one in records(journal)(lines).splitlines()
    ),
    "syslog, RFC 5424": prefixed("<30>1 2026-09-18T21:10:49.848Z cp1 kube-scheduler 812 - - "),
    "aws logs tail": prefixed("2026-09-18T21:10:49.848000+00:00 kube-scheduler-ab12 "),
    "logcli": prefixed('2026-09-18T21:10:49Z {app="kube-scheduler", node="cp1"} '),
    "Docker JSON": records(lambda line: {"log": line + "\n", "stream": "stderr", "time": STAMP}),
    "Docker JSON, keys in another order": records(lambda line: {"time": STAMP, "stream": "stderr", "log": line + "\n"}),
    "Docker JSON, lines in parts": docker_parts,
    "Docker JSON without newlines": records(lambda line: {"log": line, "stream": "stderr", "time": STAMP}),
    "Fluent Bit": records(lambda line: {"date": MICROS / 1e6, "log": line, "kubernetes": {"pod_name": "s"}}),
    "Fluent Bit's stdout": lambda lines: "".join(
        f'[{at}] kube.s: [[1789765849.848779000, {{}}], {{"log"=>"{line}"}}]\n' for at, line in enumerate(lines)
    ).encode(),
    "Fluentd's file": lambda lines: "".join(
        f"2026-09-18T21:10:49+00:00\tkube.s\t{json.dumps({'log': line + chr(10)})}\n" for line in lines
    ).encode(),
    "Fluent Bit to Elasticsearch": records(lambda line: {"_source": {"@timestamp": STAMP, "log": line, "stream": "e"}}),
    "Vector": records(lambda line: {"file": "/x", "kubernetes": {}, "message": line, "timestamp": STAMP}),
    "Filebeat": records(lambda line: {"@timestamp": STAMP, "message": line, "event": {"original": line}}),
    "OpenTelemetry": records(
        lambda line: {
            "resourceLogs": [
                {"scopeLogs": [{"logRecords": [{"timeUnixNano": NANOS, "body": {"stringValue": line}}]}]},
            ]
        }
    ),
    "logcli -o jsonl": records(lambda line: {"labels": {"app": "s"}, "line": line, "timestamp": STAMP}),
    "Loki's API": lambda lines: json.dumps(
        {"status": "success", "data": {"result": [{"stream": {}, "values": [[NANOS, line] for line in lines]}]}}
    ).encode(),
    "CloudWatch, filter-log-events": pretty(
        lambda events: {"searchedLogStreams": [], "events": events},
        lambda line: {"logStreamName": "s", "timestamp": MICROS // 1000, "message": line, "ingestionTime": 1},
    ),
    "CloudWatch, a subscription": lambda lines: json.dumps(
        {"messageType": "DATA_MESSAGE", "logEvents": [{"timestamp": MICROS // 1000, "message": one} for one in lines]}
    ).encode(),
    "CloudWatch Insights": records(lambda line: {"@timestamp": "2026-09-18 21:10:49.848Z", "@message": line}),
    "GKE, textPayload": records(lambda line: {"insertId": "x", "textPayload": line, "timestamp": STAMP}),
    "gcloud logging read --format=json": pretty(
        lambda events: events,
        lambda line: {"resource": {"labels": {"a": "b"}}, "textPayload": line, "timestamp": STAMP},
    ),
    "gcloud logging read": lambda lines: "".join(
        "---\n" + yaml.safe_dump({"insertId": "x", "textPayload": line, "timestamp": STAMP}) for line in lines
    ).encode(),
    "AKS": records(azure),
    "AKS, a blob of records": pretty(lambda records: {"records": records}, azure),
    "AKS, Event Hub": records(lambda line: {"time": STAMP, "properties": json.dumps({"log": line, "pod": "s"})}),
    "Splunk": records(lambda line: {"time": MICROS / 1e6, "host": "cp1", "event": line}),
    "Grafana": pretty(lambda lines: lines, lambda line: {"line": line, "timestamp": NANOS, "fields": {}}),
    "AKS, Log Analytics": records(lambda line: {"TimeGenerated": STAMP, "log_s": line + "\n", "Category": "s"}),
    "OpenShift": records(lambda line: {"@timestamp": STAMP, "level": "info", "message": line, "kubernetes": {"a": 1}}),
    "CSV": table,
    "logfmt": lambda lines: "".join(f"time={STAMP} level=info msg={json.dumps(line)}\n" for line in lines).encode(),
    "an array of lines": lambda lines: json.dumps([{"time": STAMP, "message": line} for line in lines]).encode(),
}
WITHOUT_YEAR: dict[str, Form] = {
    "plain": prefixed(""),
    "Windows": prefixed("", "\r"),
    "indentation": prefixed("    "),
    "kubectl logs --prefix": prefixed("[pod/kube-scheduler-cp/kube-scheduler] "),
    "stern": prefixed("kube-scheduler-cp kube-scheduler "),
    "journalctl": prefixed("Sep 18 21:10:49 cp1 kube-scheduler[812]: "),
    "docker compose": prefixed("kube-scheduler-1  | "),
    "grep": prefixed("kube-scheduler.log:"),
    "grep -n -C": grep_context,
    "colours": prefixed("\x1b[36mkube-scheduler |\x1b[0m \x1b[32m", "\x1b[0m"),
    "colours within lines": lambda lines: prefixed("")([one.replace("pod=", "\x1b[01;31mpod\x1b[m=") for one in lines]),
    "rsyslog": lambda lines: prefixed("Sep 18 21:10:49 cp1 s[812]: #033[32m")(
        [one.replace("\t", "#011") for one in lines]
    ),
    "a list of texts": lambda lines: json.dumps(lines, indent=2).encode(),
    "UTF-8 with BOM": lambda lines: codecs.BOM_UTF8 + prefixed("")(lines),
    "UTF-16": lambda lines: prefixed("", "\r")(lines).decode().encode("utf-16"),
    "UTF-16, big-endian": lambda lines: codecs.BOM_UTF16_BE + prefixed("", "\r")(lines).decode().encode("utf-16-be"),
    "UTF-16 without BOM": lambda lines: prefixed("")(lines).decode().encode("utf-16-le"),
}
KLOG_JSON: dict[str, Form] = {
    "other keys first": records(lambda line: {"pod": None, **json.loads(line)}),
    "one behind the other": lambda lines: "".join(lines).encode(),
    "records one behind the other": records(lambda line: {"event": line}, end=""),
    "Docker JSON twice": records(lambda line: {"log": json.dumps({"log": line + "\n", "time": STAMP}) + "\n"}),
    "quoted": lambda lines: "".join(f'"{line.replace(chr(34), chr(34) * 2)}"\n' for line in lines).encode(),
    "an emptied file": lambda lines: b"\0" * 3_000_000 + prefixed("")(lines) + b"\0" * 9,
    "Fluent Bit's stdout": lambda lines: "".join(
        f'[{at}] s: [[1789765849.848779000, {{}}], {{"log"=>{json.dumps(line)}}}]\n' for at, line in enumerate(lines)
    ).encode(),
    "Fluent Bit, merged": records(lambda line: {"date": 1, "kubernetes": {"a": "b"}, **json.loads(line)}),
    "OpenShift, structured": records(lambda line: {"@timestamp": STAMP, "structured": json.loads(line)}),
    "GKE": records(lambda line: {"timestamp": STAMP, "jsonPayload": json.loads(line)}),
    "ts as a text": records(lambda line: {**json.loads(line), "ts": STAMP}),
    "without ts": records(
        lambda line: {key: value for key, value in json.loads(line).items() if key != "ts"} | {"@timestamp": STAMP}
    ),
}


def read(log: bytes, near: int = NEAR, zone: str = "") -> tuple[list[LineMeaning], LineCounts]:
    counts = LineCounts()
    reader = SchedulerLog("log", near, counts, zone_of(zone) if zone else None)
    told = [*reader.read(split_lines([log])), *reader.end()]
    assert counts.lines == counts.used + counts.other + counts.continued + counts.unknown.total()
    return told, counts


def year(time: int) -> int:
    return datetime.fromtimestamp(time // 10**9, UTC).year


@pytest.mark.parametrize("form", [*WITH_YEAR, *WITHOUT_YEAR])
def test_a_log_is_found_in_every_form(form: str) -> None:
    told, counts = read((WITH_YEAR | WITHOUT_YEAR)[form](LINES), NEAR if form in WITH_YEAR else MICROS * 1000)
    assert [one.kind for one in told] == KINDS
    assert [one.pod for one in told] == ["shop/web-0", "shop/web-0", "shop/web-1", "shop/web-1"]
    assert told[1].values["err"].startswith(ERROR)
    assert told[2].block is not None
    assert told[2].block.steps == [("Computing predicates done", 180_000_000)]
    assert told[3].values["feasibleNodes"] == "15"
    assert {year(one.time) for one in told} == {2026}
    assert (counts.other, counts.unknown) == (1, {})


@pytest.mark.parametrize("form", WITH_YEAR | WITHOUT_YEAR | KLOG_JSON)
def test_json_of_klog_is_found_in_every_envelope(form: str) -> None:
    pods = [{"name": name, "namespace": "shop"} for name in ("web-0", "web-1")]
    lines = [json.dumps(ONES | {"pod": pod}, separators=(",", ":")) for pod in pods]
    told, counts = read((WITH_YEAR | WITHOUT_YEAR | KLOG_JSON)[form](lines))
    assert [(one.kind, one.pod) for one in told] == [(Kind.BEGUN, "shop/web-0"), (Kind.BEGUN, "shop/web-1")]
    assert {one.time // 1_000_000 for one in told} == {MICROS // 1000}
    assert counts.unknown == {}


FROM: dict[str, Callable[[str, str], str]] = {
    "kubectl logs --prefix": lambda pod, line: f"[pod/{pod}/kube-scheduler] {line}",
    "stern": lambda pod, line: f"{pod} kube-scheduler {line}",
    "docker compose": lambda pod, line: f"{pod}  | {line}",
    "kail": lambda pod, line: f"kube-system/{pod}[kube-scheduler]: {line}",
    "journalctl": lambda host, line: f"Sep 18 21:10:49 {host} kube-scheduler[812]: {line}",
    "grep": lambda pod, line: f"/var/log/pods/kube-system_{pod}_1/kube-scheduler/0.log:{line}",
    "logcli": lambda pod, line: (
        f'{STAMP} {{detected_level="{"info" if line[0] == "I" else "error"}", pod="{pod}"}} {line}'
    ),
    "aws logs tail": lambda stream, line: f"2026-09-18T21:10:49.848000+00:00 {stream} {line}",
    "Fluentd": lambda pod, line: json.dumps({"log": line + "\n", "kubernetes": {"pod_name": pod}}),
    "Filebeat": lambda pod, line: json.dumps({"message": line, "kubernetes": {"pod": {"name": pod}}}),
    "GKE": lambda pod, line: json.dumps({"textPayload": line, "resource": {"labels": {"pod_name": pod}}}),
    "journalctl -o json": lambda host, line: json.dumps({"_HOSTNAME": host, "MESSAGE": line}),
    "stern -o json": lambda pod, line: json.dumps({"message": line, "podName": pod}),
}


@pytest.mark.parametrize("form", FROM)
def test_several_schedulers_in_one_log_are_told_apart(form: str) -> None:
    """Their processes have the same number in their containers; a value of several lines goes on behind another's."""
    lines = [LINES[0], *LINES[1:5], LINES[8].replace("I", "W", 1)]
    told, _ = read("\n".join(FROM[form](f"cp{at}", line) for at in (1, 2) for line in lines).encode())
    assert len({one.origin for one in told}) == 2
    assert len({one.origin for one in told[:3]}) == 1
    json_lines = [FROM[form]("cp1", json.dumps(ONES | {"pod": {"name": name, "namespace": "a"}})) for name in "bc"]
    told, _ = read("\n".join(json_lines).encode())
    assert len({one.origin for one in told}) == 1


def test_a_header_that_a_shipper_moved_to_fields_is_put_back() -> None:
    message = LINES[0].partition("] ")[2]
    gke = {"jsonPayload": {"message": message, "pid": "11"}, "sourceLocation": {"file": "a.go"}, "timestamp": STAMP}
    told, _counts = read("\n".join((json.dumps(gke), f"{STAMP} stderr F {message}")).encode())
    assert [(one.kind, one.time // 1000) for one in told] == [(Kind.BEGUN, MICROS)] * 2
    assert told[0].origin == "log#11"


@pytest.mark.parametrize(
    ("log", "unknown"),
    [
        ("-- Boot 0a1 --\n--\n[-]sched-handler-sync failed: not synchronized\nFlag --port has been deprecated\n", {}),
        ("---\nSep 18 21:10:49 cp1 s[1]: " + LINES[0], {"JSON that is cut off or damaged": 1}),
        ("---\na: b\n" + LINES[0], {"JSON that is cut off or damaged": 2}),
        ("---\na: b\n---\n", {"not a line of kube-scheduler": 1}),
        ('{"log":"hello","stream":"stderr"}\n' * 3, {"not a line of kube-scheduler": 3}),
        ('{"message":"hello","time":"2026-09-18T21:10:49Z"}\n', {"JSON without a message or a time": 1}),
        ("[pod/a/b] hello\nI am no klog\n", {"not a line of kube-scheduler": 2}),
        ("{\n" + LINES[0], {"JSON that is cut off or damaged": 1}),
        ('[\n  {\n    "a": 1\n  }\n]\n', {"JSON without a message or a time": 1}),
    ],
)
def test_each_line_that_is_not_understood_is_counted(log: str, unknown: dict[str, int]) -> None:
    assert read(log.encode())[1].unknown == unknown


def test_a_pause_shows_that_a_line_without_newline_is_whole() -> None:
    now = MICROS * 1000
    session = Session(now)
    session.log("log", json.dumps({"log": LINES[0], "stream": "stderr", "time": STAMP}).encode() + b"\n", now)
    session.expire(now + 2 * 10**9)
    assert session.line_counts["log"].used == 1


def test_the_header_of_a_log_file_gives_the_year() -> None:
    (told,), counts = read(f"Log file created at: 2026/09/18 21:10:49\nRunning on machine: cp1\n{LINES[0]}".encode())
    assert (year(told.time), counts.other, counts.unknown) == (2026, 2, {})
