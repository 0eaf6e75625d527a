import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config.redaction import Redaction
from podtrail.config.secret_keys import REDACTED
from podtrail.config.types import Headers, Model, Secret

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
