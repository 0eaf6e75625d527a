"""Lines of a configuration as reports show them: what is wrong can be seen, secrets can't."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config import ConfigError
from podtrail.config.document import Document
from podtrail.config.excerpt import shown
from podtrail.config.problem import Position, Problem, Source

PLANTED = "hunter2hunter2"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"    api_token: {PLANTED}", "    api_token: [REDACTED]"),
        (f"  - password: 'it''s {PLANTED}' # a comment", "  - password: [REDACTED] # a comment"),
        (f"x: {{token: {PLANTED}, path: 3}}", "x: {token: [REDACTED], path: 3}"),
        (f'x: {{"client-secret": "a, \\"{PLANTED}", "path": 3}}', 'x: {"client-secret": [REDACTED], "path": 3}'),
        (f"headers: {{x-tenant: '}} {PLANTED}', b: {{c: d}}}} # one", "headers: [REDACTED] # one"),
        (f"headers: [{{name: x, value: {PLANTED}}}]", "headers: [REDACTED]"),
        (f"- {{name: api-key, value: {PLANTED}}}", "- {name: api-key, value: [REDACTED]}"),
        (f'password: "never closed {PLANTED}', "password: [REDACTED]"),
        (f"pasword: {PLANTED}", "pasword: [REDACTED]"),
        (f"endpoint: http://user:{PLANTED}@h:1/x", "endpoint: http://[REDACTED]@h:1/x"),
        (f"endpoint: http://h/x?key={PLANTED}", "endpoint: http://h/x?key=[REDACTED]"),
        (f"exporters.otlp_http.token={PLANTED}", "exporters.otlp_http.token=[REDACTED]"),
        (f"exporters.otlp_http.headers={{a: {PLANTED}}}", "exporters.otlp_http.headers=[REDACTED]"),
    ],
)
def test_values_of_keys_that_sound_like_secrets_are_not_shown(line: str, told: str) -> None:
    assert shown([line], 1, 1) == (told, 1)


@pytest.mark.parametrize(
    "line",
    [
        "token: ${env:TOKEN}",
        "x: {token: '${env:TOKEN}', num_traces: -5}",
        "password_file: /run/secrets/x",
        "salt: abc",
        "attributes: {value: 5}",
        "private_key: |",
        "  token:",
    ],
)
def test_all_else_is_shown(line: str) -> None:
    assert shown([line], 1, 1) == (line, 1)


@pytest.mark.parametrize(
    "text",
    [
        f"headers:\n  x-tenant: {PLANTED}",
        f"headers:\n\n  # a tenant\n  x:\n    - {PLANTED}",
        f"private_key: |\n  -----BEGIN\n{PLANTED}",
        f"private_key: |\n-----BEGIN\n\n   {PLANTED}",
        f"token: >-\n  {PLANTED}",
    ],
)
def test_a_line_that_goes_on_with_a_secret_is_not_shown(text: str) -> None:
    lines = text.splitlines()
    assert shown(lines, len(lines), 1) is None
    assert shown([*lines, "other: 1"], len(lines) + 1, 1) == ("other: 1", 1)


def test_the_caret_stands_where_it_did_under_what_is_left() -> None:
    line = f"x: {{password: {PLANTED}, path: 3}}"
    place = Position(Source("c.yaml", (line,)), 1, line.index("3") + 1)
    assert str(Problem(place, (), "no")).splitlines()[1:] == [
        "    1 | x: {password: [REDACTED], path: 3}",
        "      |                                 ^",
    ]
    inside = Problem(Position(Source("c.yaml", (line,)), 1, line.index("2") + 1, 50), (), "no")
    assert str(inside).splitlines()[2] == "      |               " + "^" * len("[REDACTED], path: 3}")


def test_what_is_no_yaml_is_reported_without_its_secrets() -> None:
    text = f"exporters:\n  otlp_http: {{headers: {{authorization: Bearer {PLANTED}}}, token: {PLANTED}, x: [}}\n"
    with pytest.raises(ConfigError) as failed:
        Document.from_text(text, "c.yaml")
    assert "otlp_http: {headers: [REDACTED], token: [REDACTED], x: [}" in str(failed.value)
    assert PLANTED not in str(failed.value)


@given(st.lists(st.text(alphabet="ab :{}[]\"'|-#=tokenpswrd$\\&?/@", max_size=40), min_size=1, max_size=4))
def test_any_text_is_shown_or_not_and_the_caret_stands_within(lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        told = shown(lines, number, len(line) + 1)
        assert told is None or 1 <= told[1] <= len(told[0]) + 1
