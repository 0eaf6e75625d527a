"""The `bearertokenauth` extension: tokens from the configuration and from files that change."""

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from podtrail_extensions.bearertokenauth import FACTORY, Config
from pydantic import ValidationError

from podtrail.component import ClientAuthenticator, Context, ServerAuthenticator, StartError, Unauthenticated
from podtrail.transport import followed_file

MISMATCH = "provided authorization does not match expected scheme or token"


def make(**config: Any) -> Any:
    return FACTORY.create(FACTORY.Config.model_validate(config), Context(id="bearertokenauth"))


def refusal(extension: Any, shown: str | None) -> str:
    with pytest.raises(Unauthenticated) as refused:
        asyncio.run(extension.authenticate(shown, "192.0.2.1"))
    return str(refused.value)


def take(extension: Any, shown: str) -> None:
    assert asyncio.run(extension.authenticate(shown, "192.0.2.1")) is None


def started(**config: Any) -> Any:
    extension = make(**config)
    asyncio.run(extension.__aenter__())
    return extension


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def a_second_later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets files be looked at again, as a second does."""

    def pass_it() -> None:
        monkeypatch.setattr(followed_file, "_LOOK_AGAIN", 0)

    pass_it()
    return pass_it


def replace(file: Path, text: str) -> None:
    """Replaces a file as Kubernetes does those that it mounts: the new one takes its place at once."""
    new = file.with_suffix(".new")
    new.write_text(text)
    os.replace(new, file)


def test_it_authenticates_for_servers_and_for_clients() -> None:
    extension = make(token="s3cret")
    assert isinstance(extension, ServerAuthenticator)
    assert isinstance(extension, ClientAuthenticator)


def test_the_right_token_is_taken_and_names_nobody() -> None:
    take(started(token="s3cret"), "Bearer s3cret")


@pytest.mark.parametrize("shown", ["Bearer s3cre", "Bearer s3cret2", "bearer s3cret", "s3cret", "Basic s3cret", "é"])
def test_another_token_or_scheme_is_refused_in_the_collectors_words(shown: str) -> None:
    assert refusal(started(token="s3cret"), shown) == MISMATCH


@pytest.mark.parametrize("shown", [None, ""])
def test_a_missing_header_is_named(shown: str | None) -> None:
    assert refusal(started(token="x", header="X-Token"), shown) == "missing or empty authorization header: X-Token"


def test_each_of_several_tokens_is_taken_and_the_first_is_shown() -> None:
    extension = started(tokens=["one", "two"])
    take(extension, "Bearer one")
    take(extension, "Bearer two")
    assert extension.credentials() == {"authorization": "Bearer one"}


def test_scheme_and_header_are_those_that_are_configured() -> None:
    extension = started(token="s3cret", scheme="", header="X-Api-Key")
    assert extension.credentials() == {"x-api-key": "s3cret"}
    take(extension, "s3cret")


def test_a_file_has_a_token_a_line_and_empty_lines_count_for_nothing(file: Path) -> None:
    file.write_text("one\n\n  two \r\n")
    extension = started(filename=str(file))
    take(extension, "Bearer one")
    take(extension, "Bearer two")
    assert refusal(extension, "Bearer ") == MISMATCH


def test_a_file_that_was_replaced_is_read_again(file: Path, a_second_later: Callable[[], None]) -> None:
    file.write_text("old\n")
    extension = started(filename=str(file))
    replace(file, "new\nold\n")
    take(extension, "Bearer new")
    take(extension, "Bearer old")
    assert extension.credentials() == {"authorization": "Bearer new"}
    replace(file, "new\n")
    assert refusal(extension, "Bearer old") == MISMATCH


def test_a_file_is_looked_at_once_a_second_at_most(file: Path) -> None:
    file.write_text("old")
    extension = started(filename=str(file))
    replace(file, "new")
    take(extension, "Bearer old")


def test_a_file_that_has_become_a_pipe_is_not_waited_for(
    file: Path, a_second_later: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("old")
    extension = started(filename=str(file))
    file.unlink()
    os.mkfifo(file)
    take(extension, "Bearer old")
    assert caplog.messages == [f"filename: {file} is no file any more; what it said before still holds"]


@pytest.mark.parametrize("becomes", ["", "\n\n", "a\x01b", None, "\x00" * (2 << 20), "\ufeff"])
def test_a_file_that_is_of_no_use_leaves_the_tokens_and_is_told_once(
    file: Path, becomes: str | None, a_second_later: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("old")
    extension = started(filename=str(file))
    with caplog.at_level(logging.INFO):
        if becomes is None:
            file.unlink()
        else:
            replace(file, becomes)
        for _ in range(3):
            take(extension, "Bearer old")
    (said,) = caplog.messages
    assert said.startswith(f"filename: {'can' if becomes is None else str(file)}")
    assert said.endswith("; what it said before still holds")


def test_nothing_of_a_token_is_said_of_a_file_that_has_one_in_the_wrong_form(file: Path) -> None:
    file.write_text("good\nba\x01d")
    with pytest.raises(StartError) as caught:
        started(filename=str(file))
    assert str(caught.value) == f"filename: {file} has characters in line 2 that no header can carry"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(StartError, match=f"^filename: {file} is not UTF-8$"):
        started(filename=str(file))


def test_a_file_that_is_missing_at_the_start_is_named(file: Path) -> None:
    with pytest.raises(StartError, match=f"^filename: can't read {file}: No such file or directory$"):
        started(filename=str(file))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "no bearer token provided"),
        ({"token": ""}, "a token is empty"),
        ({"token": "one", "tokens": ["two"]}, "either tokens or token should be provided, not both"),
        ({"token": "with\nend"}, "has characters that no header can carry"),
        ({"token": "x", "header": "a b"}, "can't be the name of a header"),
        ({"token": "x", "scheme": "a b"}, "is no word"),
    ],
)
def test_an_impossible_configuration_is_refused_without_the_token(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as caught:
        FACTORY.Config.model_validate(config)
    (error,) = caught.value.errors(include_input=False, include_url=False)
    assert words in error["msg"]
    assert "with" not in error["msg"]


def test_a_token_beside_a_file_is_said_to_be_ignored() -> None:
    config = FACTORY.Config.model_validate({"token": "x", "filename": "/run/token"})
    assert isinstance(config, Config)
    assert config.warnings() == [(("token",), "is ignored: a filename is specified")]


def test_tokens_are_in_no_representation() -> None:
    config = FACTORY.Config.model_validate({"tokens": ["s3cret", "other"]})
    assert "s3cret" not in repr(config) + str(config.model_dump())
