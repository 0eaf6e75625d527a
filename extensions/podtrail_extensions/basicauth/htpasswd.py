"""What `htpasswd` writes: a `user:hash` a line, with the hashes that the Collector takes.

Those are bcrypt, Apache's MD5 (`$apr1$`) and crypt's (`$1$`), SHA-1 (`{SHA}`) and salted (`{SSHA}`), crypt's SHA-256
and SHA-512 (`$5$`, `$6$`), and what is none of these is the password itself.
"""

import hmac
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from passlib.hash import (
    apr_md5_crypt,
    bcrypt,
    ldap_salted_sha1,
    ldap_sha1,
    md5_crypt,
    sha256_crypt,
    sha512_crypt,
)

_SLOW: Final[Sequence[Any]] = (bcrypt, apr_md5_crypt, md5_crypt, sha256_crypt, sha512_crypt)
_FAST: Final[Sequence[Any]] = (ldap_sha1, ldap_salted_sha1)


class Password(NamedTuple):
    """What a password is compared with."""

    matches: Callable[[str], bool]
    slow: bool
    """Whether comparing takes long, as it should: milliseconds and more."""


def read_htpasswd(text: str) -> Mapping[str, Password]:
    """Return the passwords by user; of two for one user the last counts.

    Raises:
        ValueError: a line can't be read; the text names its number, and nothing of what is in it.
    """
    found: dict[str, Password] = {}
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        user, colon, hashed = entry.partition(":")
        if not colon or not user or not hashed:
            raise ValueError(f"has no user:hash in line {number}")
        found[user] = _password(hashed, number)
    if not found:
        raise ValueError("has no user in it")
    return found


def _password(hashed: str, number: int) -> Password:
    for handler in (*_SLOW, *_FAST):
        if handler.identify(hashed):
            _check_well_formed(handler, hashed, number)
            return Password(partial(_verified, handler, hashed), slow=handler in _SLOW)
    if hashed.startswith(("$", "{")):
        raise ValueError(
            f"has a hash in line {number} that is not read: bcrypt (htpasswd -B), $apr1$, $1$, $5$, $6$, {{SHA}} and "
            "{SSHA} are"
        )
    return Password(lambda password: hmac.compare_digest(hashed.encode(), password.encode()), slow=False)


def _check_well_formed(handler: Any, hashed: str, number: int) -> None:
    try:
        handler.from_string(hashed) if hasattr(handler, "from_string") else handler.verify("", hashed)
    except ValueError:
        raise ValueError(f"has a damaged hash in line {number}") from None


def _verified(handler: Any, hashed: str, password: str) -> bool:
    try:
        matches: bool = handler.verify(password, hashed)
    except ValueError:  # longer than the scheme takes, or with a NUL in it: nobody has such a password
        return False
    return matches
