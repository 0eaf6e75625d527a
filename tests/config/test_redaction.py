import io
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from podtrail_extensions import health_check

from podtrail.cli.print_config import to_yaml
from podtrail.cli.reading import Failed
from podtrail.component.refusals import Refusing
from podtrail.config import ConfigError, Document
from podtrail.config.problem import Position, Problem, Source
from podtrail.config.redaction import Redaction
from podtrail.config.secret_keys import REDACTED, redacted, remember_secrets, without_remembered
from podtrail.config.types import SECOND, Headers, Model, Secret
from podtrail.pipeline.settings import read_settings
from podtrail.service.logs import ConsoleFormatter, JsonFormatter

PLANTED = "hunter2-hunter2"


class Inner(Model):
    headers: Headers | None = None
    handle: Secret | None = None


class Outer(Model):
    many: tuple[Inner, ...] = ()
    one: Inner | None = None


def test_what_a_model_declares_a_secret_is_not_shown() -> None:
    written = {"many": [{"headers": {"x-harmless": PLANTED}}], "one": {"handle": PLANTED}}
    assert Redaction({}).configuration(written, Outer) == {
        "many": [{"headers": {"x-harmless": REDACTED}}],
        "one": {"handle": REDACTED},
    }


@pytest.mark.parametrize(
    "written",
    [
        {"password": PLANTED},
        {"api_key": PLANTED},
        {"client-secret": PLANTED},
        {"authorization": f"Bearer {PLANTED}"},
        {"deep": [{"token": PLANTED}]},
        {"password": 123456789},
        {"actions": [{"key": "x-token", "value": PLANTED, "action": "insert"}]},
        {"endpoint": f"https://user:{PLANTED}@collector.example:4317/v1"},
        {"endpoint": f"https://{PLANTED}@collector.example"},
        {"url": f"https://x.example/hook?sig={PLANTED}&v=1"},
        {"brokers": ["b1:9092", f"sasl://u:{PLANTED}@b2:9092"]},
    ],
)
def test_what_looks_like_a_secret_is_not_shown(written: Any) -> None:
    told = str(Redaction({}).configuration(written))
    assert PLANTED not in told
    assert "123456789" not in told
    assert REDACTED in told


def test_what_comes_from_the_environment_is_shown_by_its_name() -> None:
    redaction = Redaction({"BACKEND": "collector.example:4317", "HOME": "/root", "N": "1"})
    written = {"endpoint": "https://collector.example:4317", "path": "/root/x", "count": 1}
    assert redaction.configuration(written) == {
        "endpoint": "https://[from the environment: BACKEND]",
        "path": "/root/x",
        "count": 1,
    }


@pytest.mark.parametrize("key", ["password_file", "token_path", "decision_wait", "endpoint", "key_name"])
def test_what_is_said_about_a_secret_is_shown(key: str) -> None:
    assert Redaction({}).configuration({key: "/etc/x"}) == {key: "/etc/x"}


def test_secrets_are_taken_out_of_text_elsewhere() -> None:
    redaction = Redaction({"DB_PASSWORD": "from-the-environment", "SHORT_TOKEN": "abc"})
    redaction.learn({"one": {"handle": PLANTED}, "headers": {}}, Outer)
    redaction.learn({"headers": {"authorization": "Bearer abcdefghijklmnop"}})
    for line in (
        f"refused with {PLANTED}",
        "401 for abcdefghijklmnop",
        "from-the-environment",
        "GET https://u:p@h.example/x?token=t1 failed",
    ):
        told = redaction.text(line)
        assert REDACTED in told
        assert not any(one in told for one in (PLANTED, "abcdefghijklmnop", "from-the-environment", "u:p@", "=t1"))
    assert redaction.text("abc is in every word") == "abc is in every word"


def test_a_secret_is_found_in_a_line_of_json() -> None:
    redaction = Redaction({})
    redaction.learn({"password": 'with "quotes" and \\'})
    assert redaction.text(json.dumps({"msg": 'refused: with "quotes" and \\'})) == '{"msg": "refused: [REDACTED]"}'


def test_a_long_log_is_searched_quickly() -> None:
    """As long as it takes to search for a URL at every letter would be minutes."""
    assert Redaction({}).text("x" * 3_000_000) == "x" * 3_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_whatever_is_written_is_told_in_the_same_shape(written: Any) -> None:
    told = Redaction({}).configuration(written)
    assert type(told) is type(written) or told == REDACTED
    if isinstance(written, dict | list):
        assert len(told) == len(written)


TOKEN = "Kq7-planted-9xZ"
CORPUS = [
    f"postgres://user:{TOKEN}@db.example/traces",
    f"https://user:p@{TOKEN}@collector.example:4318",
    f"https://user:{TOKEN}/with/slashes@collector.example",
    f"https://user:{TOKEN}?#@collector.example",
    f"amqp://{TOKEN}@host",
    f"https://collector.example/v1/traces?sig={TOKEN}&se=2026",
    f"https://collector.example/#?access={TOKEN}",
    f"Server=db;User Id=u;Password={TOKEN};Encrypt=true",
    f"Endpoint=sb://x.example/;SharedAccessKey=abc;AccountKey={TOKEN}",
    f"user:{TOKEN}@db.example:5432/traces",
    f"Authorization: Bearer {TOKEN}",
    "authorization=Basic dXNlcjpwbGFudGVk" + "=",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.c2lnbmF0dXJl",
    "AKIAIOSFODNN7PLANTED",
    "ghp_plantedplantedplantedplanted1234",
    "glpat-planted-planted-planted",
    "xoxb-planted-planted",
    "-----BEGIN RSA PRIVATE KEY-----\nplanted\n-----END RSA PRIVATE KEY-----",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nplanted\n-----END PGP PRIVATE KEY BLOCK-----",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYplanted",
    "proxy-authorization: Basic dXNlcjpwbGFudGVk",
    "SharedAccessSignature sr=https%3A%2F%2Fx&sig=planted%3D&se=1&skn=k",
    f'PlainLoginModule required username="u" password="{TOKEN}";',
    f"ScramLoginModule required username='u' password='{TOKEN}';",
    f'{{"user": "u", "password":"{TOKEN}"}}',
    f'{{\\"apiKey\\": \\"{TOKEN}\\"}}',
    f"x-api-key: {TOKEN}",
    f"Cookie: session={TOKEN}",
    f"Authorization: ApiKey {TOKEN}",
    f"bearer_token: {TOKEN}",
    "https://hooks.slack.com/services/T000/B000/planted",
    "sk_live_plantedplantedplanted",
    "pypi-AgEIplantedplantedplanted",
    f"kafka-configs --password {TOKEN}",
    f"//user:{TOKEN}@host/path",
    f"user:{TOKEN}@host",
    f"https://user:p%40{TOKEN}%3A@host/x",
    f"https://user:p@ss:w@{TOKEN}@host/x",
]
ORDINARY = [
    "https://collector.example:4317/v1/traces",
    "https://host:8080/path@here",
    "connection refused: collector.example:4317",
    "registry.example/podtrail:0.1.0@sha256:0123456789abcdef",
    "git@github.com:example/podtrail.git",
    "basic authentication failed",
    "a token bucket of 10 requests",
    "system:serviceaccount:kube-system:default-scheduler",
    "0/34 nodes are available: 34 Insufficient cpu.",
    "localhost:4317, 127.0.0.1:4318 and [::1]:8888",
    "2026-11-28T23:16:38.000Z",
    "exporters::kafka::auth::sasl::password: must be text",
    "the token: /etc/podtrail/token1 can't be read",
    "write a secret: name and key",
    "exporter x with token: 401",
    "basic authentication (RFC 7617) asks for user and password",
]


def shown_by_print_config(text: str) -> str:
    document = Document.from_mapping({"exporters": {"x": {"anything": text.replace("$", "$$")}}})
    return str(yaml.safe_load(to_yaml(document, {}))["exporters"]["x"]["anything"])


def record(text: str) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "podtrail", "msg": text})


def shown_by_health_check(text: str) -> str:
    return health_check._state(0, Refusing(0, text), 60 * SECOND)["status"]


def shown_as_place(text: str) -> str:
    """A key that is not known."""
    return Problem(Position(Source("c.yaml")), ("exporters", text), "").headline


def shown_by_command(text: str) -> str:
    shown = io.StringIO()
    Failed(text).show(shown)
    return shown.getvalue().removesuffix("\n")


def shown_in_traceback(text: str) -> str:
    error = ValueError(text)
    made = logging.makeLogRecord({"name": "podtrail", "msg": "failed", "exc_info": (ValueError, error, None)})
    stack: str = json.loads(JsonFormatter().format(made))["stacktrace"]
    return stack


SHOWN: Mapping[str, Callable[[str], str]] = {
    "support bundle": lambda text: Redaction({}).text(text),
    "configuration in a support bundle": lambda text: str(Redaction({}).configuration({"anything": text})["anything"]),
    "print-config": shown_by_print_config,
    "health check": shown_by_health_check,
    "place of an error": shown_as_place,
    "error": lambda text: Problem(Position(Source("c.yaml")), (), text).headline,
    "log": lambda text: json.loads(JsonFormatter().format(record(text)))["msg"],
    "failure of a command": shown_by_command,
    "traceback in the log": shown_in_traceback,
    "log on a terminal": lambda text: ConsoleFormatter().format(record(text)),
}


@pytest.mark.parametrize("output", SHOWN)
@pytest.mark.parametrize("text", CORPUS)
def test_no_output_repeats_a_secret(text: str, output: str) -> None:
    told = SHOWN[output](text)
    assert REDACTED in told
    assert not any(part in told for part in (TOKEN, "planted", "PLANTED", "dXNlcj", "eyJz"))


@pytest.mark.parametrize("output", SHOWN)
@pytest.mark.parametrize("text", ORDINARY)
def test_what_is_no_secret_is_shown_by_every_output(text: str, output: str) -> None:
    assert SHOWN[output](text).endswith(text)


@pytest.mark.parametrize("piece", ["a-", "a:b@", "x=", "://a:", "eyJ", "token ", "-----BEGIN"])
def test_long_texts_are_searched_in_linear_time(piece: str) -> None:
    began = time.process_time()
    text = Redaction({}).text(piece * 20_000)
    assert len(text) > 0
    assert time.process_time() - began < 10, "a search in quadratic time takes minutes"


def test_values_of_files_and_variables_are_shown_by_their_origin(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    written = {"a": f"${{file:{tmp_path}/token}}", "b": "${env:HOST}:4317", "c": "${env:UNSET:-d}", "api.key": "k"}
    document = Document.from_mapping({"exporters": {"x": written}}, environ={"HOST": "backend.example"})
    shown = yaml.safe_load(to_yaml(document, {}))["exporters"]["x"]
    assert shown == written | {"api.key": REDACTED}
    redaction = Redaction({}, document.from_files)
    assert redaction.configuration(document.plain()["exporters"]["x"])["a"] == REDACTED
    assert TOKEN not in redaction.text(f"refused: {TOKEN}")


KNOWN = "correct horse/b@ttery"


@pytest.mark.parametrize(
    ("written", "secret"),
    [
        ("{endpoint: 'localhost:1', headers: {x-anything: 'SECRET'}}", KNOWN),
        ("{endpoint: 'localhost:1', auth: {password: 'SECRET'}}", KNOWN),
        ("{endpoint: 'http://user:SECRET@localhost:1'}", "c0rrect-horse"),
        ("{endpoint: 'localhost:1', headers: {x: 'a ${file:FILE} b'}}", KNOWN),
        ("{endpoint: '${file:FILE}'}", "staplers"),
        ("{endpoint: '${env:MY_TOKEN}'}", KNOWN),
    ],
)
def test_a_secret_of_the_configuration_is_known_to_all_outputs(written: str, secret: str, tmp_path: Path) -> None:
    """Wherever a library puts it, without a shape: as it is, in an URL, in JSON, with backslashes."""
    (tmp_path / "secret").write_text(f"{secret}\n")
    written = written.replace("SECRET", secret).replace("FILE", str(tmp_path / "secret"))
    text = f"exporters: {{otlp_grpc: {written}}}\nreceivers: {{otlp: }}\nservice: {{pipelines: {{}}}}\n"
    with pytest.raises(ConfigError):
        read_settings(Document.from_text(text, "c.yaml", {"MY_TOKEN": secret}))
    for form in (secret, quote(secret, safe=""), quote(secret), json.dumps(secret), repr(secret)):
        for output, show in SHOWN.items():
            assert secret not in (told := show(f"it failed: {form}.")), output
            assert form not in told, output
            assert "it failed" in told, output


def test_pages_leave_out_what_is_remembered_but_for_mere_words() -> None:
    remember_secrets([KNOWN, 'it"s', "sampled", "p&ss-w<rd"])
    page = f"<p class=sampled>{KNOWN} p&amp;ss-w&lt;rd p%26ss-w%3Crd".encode()
    assert without_remembered(page) == f"<p class=sampled>{REDACTED} {REDACTED} {REDACTED}".encode()


def test_a_secret_that_is_a_word_is_taken_out_where_it_is_the_whole_word(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sampled")
    Document.from_text(f"exporters: {{x: {{a: '${{file:{tmp_path}/secret}}'}}}}", "c.yaml", {})
    assert (
        redacted("resampled spans were sampled by resampledness") == f"resampled spans were {REDACTED} by resampledness"
    )


def test_what_stands_around_a_short_secret_of_a_file_and_in_keys_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "pin").write_text("4711")
    written = {"pin": f"a-${{file:{tmp_path}/pin}}-b", "list": [f"${{file:{tmp_path}/pin}}"]}
    keys = {f"amqp://u:{TOKEN}@a": 1, f"amqp://u:{TOKEN}2@a": 2}
    document = Document.from_mapping({"exporters": {"x": written | keys}}, environ={})
    shown = Redaction({}, document.from_files).configuration(document.plain()["exporters"]["x"])
    assert shown == {"pin": REDACTED, "list": [REDACTED], f"amqp://{REDACTED}@a": 1, f"amqp://{REDACTED}@a 2": 2}
    assert TOKEN not in to_yaml(document, {})
    assert "4711" not in to_yaml(document, {})
