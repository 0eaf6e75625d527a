"""The `basicauth` extension: what `htpasswd` writes for servers, name and password for clients."""

import asyncio
import os
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from podtrail_extensions.basicauth import FACTORY
from podtrail_extensions.basicauth.htpasswd import Password, read_htpasswd
from podtrail_extensions.basicauth.verification import Verification
from pydantic import ValidationError

from podtrail.component import ClientAuthenticator, Context, Refused, ServerAuthenticator, StartError, Unauthenticated
from podtrail.transport import followed_file

HASHES = {
    "bcrypt": "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC",
    "apr1": "$apr1$r31.....$HqJZimcKQFAMYayBlzkrA/",
    "sha": "{SHA}VBPuJHI7uixaa6LQGWx4s+5GKNE=",
    "plain": "myPassword",
}
"""Of the password myPassword, from Apache's documentation of password formats."""


def make(**config: Any) -> Any:
    return FACTORY.create(FACTORY.Config.model_validate(config), Context(id="basicauth"))


def started(**config: Any) -> Any:
    extension = make(**config)
    asyncio.run(extension.__aenter__())
    return extension


def basic(name: str, password: str) -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def asked(extension: Any, shown: str | None) -> Any:
    return asyncio.run(extension.authenticate(shown, "192.0.2.1"))


def refusal(extension: Any, shown: str | None) -> str:
    with pytest.raises(Unauthenticated) as refused:
        asked(extension, shown)
    return str(refused.value)


@pytest.mark.parametrize("kind", HASHES)
def test_each_hash_that_apache_documents_is_read(kind: str) -> None:
    extension = started(htpasswd={"inline": f"# users\n\nagent:{HASHES[kind]}\n"})
    assert isinstance(extension, ServerAuthenticator)
    assert asked(extension, basic("agent", "myPassword")) == "agent"
    assert refusal(extension, basic("agent", "mypassword")) == "invalid credentials"
    assert refusal(extension, basic("agent", "")) == "invalid credentials"


@pytest.mark.parametrize(
    "hashed",
    [
        "{SSHA}q8JTNnNVm+zpDLPk5BPjpw4yLzAxMjM0NTY3",
        "$1$saltsalt$qjXMvbEw8oaL.CzflDtaK/",
        "$5$rounds=1000$saltsalt$Xw9oa6IH0rTXqLkZfmcvmh5LCP2hFvDlkkBfoGxPWdD",
    ],
)
def test_salted_and_crypts_hashes_are_recognised(hashed: str) -> None:
    (password,) = read_htpasswd(f"agent:{hashed}").values()
    assert not password.matches("wrong")


def test_hashes_of_the_library_match_their_passwords() -> None:
    from passlib.hash import ldap_salted_sha1, md5_crypt, sha256_crypt, sha512_crypt

    for handler in (ldap_salted_sha1, md5_crypt, sha256_crypt.using(rounds=1000), sha512_crypt.using(rounds=1000)):
        hashed = handler.hash("it: is")
        (password,) = read_htpasswd(f"agent:{hashed}").values()
        assert password.matches("it: is"), hashed
        assert not password.matches("it: was"), hashed


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (None, "no basic auth provided"),
        ("", "no basic auth provided"),
        ("Bearer x", "invalid authorization scheme prefix"),
        ("Basic ###", "invalid authorization format"),
        ("Basic é", "invalid authorization format"),
        ("Basic " + b64encode(b"nocolon").decode(), "invalid authorization format"),
        ("Basic " + b64encode(b"\xff:\xfe").decode(), "invalid authorization format"),
        (basic("nobody", "myPassword"), "invalid credentials"),
        (basic("agent", "x" * 100), "invalid credentials"),
        (basic("agent", "a\x00b"), "invalid credentials"),
    ],
)
def test_wrong_credentials_are_refused_in_the_collectors_words(shown: str | None, words: str) -> None:
    assert refusal(started(htpasswd={"inline": f"agent:{HASHES['bcrypt']}"}), shown) == words


def test_the_schemes_case_does_not_count() -> None:
    extension = started(htpasswd={"inline": "agent:secret"})
    assert asked(extension, basic("agent", "secret").replace("Basic", "bASIC")) == "agent"


def test_inline_text_goes_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / ".htpasswd"
    file.write_text("agent:old\nother:1\n")
    extension = started(htpasswd={"file": str(file), "inline": "agent:new"})
    assert asked(extension, basic("agent", "new")) == "agent"
    assert refusal(extension, basic("agent", "old")) == "invalid credentials"
    assert asked(extension, basic("other", "1")) == "other"


def test_a_user_who_is_taken_out_of_the_file_is_refused_though_he_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed_file, "_LOOK_AGAIN", 0)
    file = tmp_path / ".htpasswd"
    file.write_text(f"agent:{HASHES['bcrypt']}\nother:1\n")
    extension = started(htpasswd={"file": str(file)})
    assert asked(extension, basic("agent", "myPassword")) == "agent"
    new = tmp_path / "new"
    new.write_text("other:1\n")
    os.replace(new, file)
    assert refusal(extension, basic("agent", "myPassword")) == "invalid credentials"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("good:x\nnocolon", "has no user:hash in line 2"),
        ("agent:", "has no user:hash in line 1"),
        ("agent:$argon2id$v=19$m=65536", "has a hash in line 1 that is not read: bcrypt"),
        ("agent:{CRYPT}x", "has a hash in line 1 that is not read"),
        ("agent:$2y$05$tooshort", "has a damaged hash in line 1"),
        ("# nobody\n", "has no user in it"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_by_number_and_not_by_content(text: str, words: str) -> None:
    with pytest.raises(StartError) as caught:
        started(htpasswd={"inline": text})
    assert str(caught.value).startswith(f"htpasswd::inline {words}")
    assert "argon2id$v" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "no credential source provided"),
        ({"htpasswd": {}}, "no credential source provided"),
        ({"client_auth": {"password": "x"}}, "no credential source provided"),
        ({"htpasswd": {"inline": "a:b"}, "client_auth": {"username": "a"}}, "only one of htpasswd and client_auth"),
        ({"client_auth": {"username": "a:b"}}, "can't have a colon"),
    ],
)
def test_an_impossible_configuration_is_refused(config: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        FACTORY.Config.model_validate(config)


def test_a_client_shows_name_and_password() -> None:
    extension = started(client_auth={"username": "agent", "password": "it: is"})
    assert isinstance(extension, ClientAuthenticator)
    assert extension.credentials() == {"authorization": basic("agent", "it: is")}
    assert not extension.renews


def test_a_clients_files_go_before_its_keys_and_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed_file, "_LOOK_AGAIN", 0)
    name, password = tmp_path / "name", tmp_path / "password"
    name.write_text("agent\n")
    password.write_text("one\n")
    extension = started(
        client_auth={"username": "x", "username_file": str(name), "password": "y", "password_file": str(password)}
    )
    assert extension.renews
    assert extension.credentials() == {"authorization": basic("agent", "one")}
    password.write_text("twotwo\n")
    assert extension.credentials() == {"authorization": basic("agent", "twotwo")}


class Slow:
    """Passwords whose comparison takes until it is let go, and is counted."""

    def __init__(self) -> None:
        self.compared: list[str] = []
        self.gate = threading.Event()
        self.password = Password(self._matches, slow=True)

    def _matches(self, password: str) -> bool:
        self.compared.append(password)
        assert self.gate.wait(30)
        return password == "right"


async def test_a_password_is_hashed_once_for_all_requests_that_show_it() -> None:
    slow = Slow()
    slow.gate.set()

    checking = Verification({"agent": slow.password})
    assert await asyncio.gather(*(checking.is_right("agent", "right", "192.0.2.1") for _ in range(50))) == [True] * 50
    assert not await checking.is_right("agent", "wrong", "192.0.2.1")
    assert not await checking.is_right("agent", "wrong", "192.0.2.1")
    assert slow.compared == ["right", "wrong"]


async def test_who_guesses_keeps_nobody_elses_password_from_being_checked() -> None:
    slow = Slow()

    checking = Verification({"agent": slow.password})
    guesses = [asyncio.create_task(checking.is_right("agent", f"guess {n}", "192.0.2.66")) for n in range(500)]
    honest = asyncio.create_task(checking.is_right("agent", "right", "192.0.2.1"))
    await asyncio.sleep(0)
    slow.gate.set()
    assert await honest
    outcomes = await asyncio.gather(*guesses, return_exceptions=True)
    assert sum(isinstance(one, Refused) for one in outcomes) == 496
    assert len(slow.compared) == 5, "four guesses and the right one"


def test_a_user_who_is_not_there_takes_as_long_as_one_who_is() -> None:
    slow = Slow()
    slow.gate.set()
    assert not asyncio.run(Verification({"agent": slow.password}).is_right("nobody", "x", "192.0.2.1"))
    assert slow.compared == ["x"]
