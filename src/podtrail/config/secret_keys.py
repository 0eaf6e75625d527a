"""What is taken for a secret by sight: keys that sound like one, users and the values of queries in URLs."""

import re
from collections.abc import Iterator
from typing import Final

REDACTED: Final = "[REDACTED]"
_SOUNDS_SECRET: Final = re.compile(
    r"(?i)pas+w|secret|token|credential|authoriz|api[-_.]?key|access[-_.]?key|private[-_.]?key|cookie|bearer|dsn|pwd"
)
_OPENLY: Final = re.compile(r"(?i)(file|path|url|name|names|seconds|timeout|format|header|digits)$")
"""What is said about a secret, not the secret: `password_file`."""
_USER: Final = re.compile(r"(?<=://)[^/?#@\s]*@")
_QUERY: Final = re.compile(r"(?<=[?&;])[^=&;#\s]*=([^&;#\s]*)")
_URL: Final = re.compile(r"://\S+")
"""From the scheme on; it begins with a literal, so that long texts are searched quickly."""

Stretch = tuple[int, int]
"""From which character of a text to before which."""


def is_secret_key(key: str) -> bool:
    """Return whether the value of a key is taken for a secret."""
    return bool(_SOUNDS_SECRET.search(key)) and not _OPENLY.search(key)


def credentials_in(text: str) -> Iterator[Stretch]:
    """Yield where users and values of queries stand in the URLs of a text, in no order; a user without its `@`."""
    for url in _URL.finditer(text):
        user = _USER.search(url[0])
        if user:
            yield url.start() + user.start(), url.start() + user.end() - 1
        for value in _QUERY.finditer(url[0]):
            yield url.start() + value.start(1), url.start() + value.end(1)


def without(text: str, stretches: Iterator[Stretch]) -> str:
    """Return a text with `REDACTED` in the place of each of these stretches."""
    told, at = [], 0
    for start, end in sorted(stretches):
        if start >= at:
            told += [text[at:start], REDACTED]
            at = end
    return "".join((*told, text[at:]))
