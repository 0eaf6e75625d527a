"""What is taken for a secret by sight: keys that sound like one, users and queries of URLs, and well-known shapes."""

import re
from collections.abc import Iterator
from typing import Final

REDACTED: Final = "[REDACTED]"
_SOUNDS_SECRET: Final = re.compile(
    r"(?i)pas+w|secret|token|credential|authoriz|api[-_.]?key|access[-_.]?key|private[-_.]?key|cookie|bearer|dsn|pwd"
)
_OPENLY: Final = re.compile(r"(?i)(file|path|url|name|names|seconds|timeout|format|header|digits)$")
"""What is said about a secret, not the secret: `password_file`."""
_USER: Final = re.compile(
    r"""(?<=://)(?:
        [^/?\#@:\s"']{1,128}:(?!\d{1,5}(?:[/?\#]|$))[^\s"']{0,256}@(?=[\w.\[-])  # a password may have / and @
        |[^/?\#\s"']*@
    )""",
    re.VERBOSE,
)
_SHAPES: Final = re.compile(
    r"""(?:
        (?i:\bbearer|\btoken|\bbasic)\s+(?=[\w.~+/-]*[\d=])(?P<scheme>[\w.~+/-]{8,}=*)
        |(?i:pas+w(?:or)?d|pwd|secret|token|api[-_]?key|account_?key|access_?key|signature)=(?P<pair>[^;&\s"',]+)
        |(?<![\w/.@+-])[\w.+-]{1,64}:(?P<user>(?!\d{1,5}\b)[^\s:@/"']{3,128})@(?!sha256:)[\w-]+(?:\.[\w-]+|:\d)
        |(?P<whole>
            \beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?
            |\b(?:AKIA|ASIA)[0-9A-Z]{16}\b
            |\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{8,}
            |\bsk-[\w-]{16,}|\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_\w{20,}|\bhvs\.[\w-]{16,}
            |\bdt0[a-z]\d\d\.[A-Z0-9]{8,}(?:\.[A-Z0-9]+)?|\bgl(?:c|sa)_[\w+/=]{20,}
            |-----BEGIN[A-Z ]*PRIVATE\ KEY-----.*?(?:-----END[A-Z ]*PRIVATE\ KEY-----|\Z)
        )
    )""",
    re.VERBOSE | re.DOTALL,
)
"""Values that are secrets wherever they stand: of headers, connection strings, and tokens that say whose they are."""
_QUERY: Final = re.compile(r"(?<=[?&;])[^=&;#\s]*=([^&;#\s]*)")
_URL: Final = re.compile(r"://\S+")
"""From the scheme on; it begins with a literal, so that long texts are searched quickly."""

Stretch = tuple[int, int]
"""From which character of a text to before which."""


def is_secret_key(key: str) -> bool:
    """Return whether the value of a key is taken for a secret."""
    return bool(_SOUNDS_SECRET.search(key)) and not _OPENLY.search(key)


def credentials_in(text: str) -> Iterator[Stretch]:
    """Yield where secrets stand in a text, in no order: users (without `@`) and queries of URLs, and known shapes."""
    for shape in _SHAPES.finditer(text):
        assert shape.lastgroup is not None, "each alternative has a group"
        yield shape.span(shape.lastgroup)
    for url in _URL.finditer(text):
        user = _USER.search(url[0])
        if user:
            yield url.start() + user.start(), url.start() + user.end() - 1
        for value in _QUERY.finditer(url[0]):
            yield url.start() + value.start(1), url.start() + value.end(1)


def redacted(text: str) -> str:
    """Return a text with `REDACTED` in the place of each secret in it."""
    told, at = [], 0
    for start, end in sorted(credentials_in(text)):
        if start >= at:
            told += [text[at:start], REDACTED]
        at = max(at, end)
    return "".join((*told, text[at:]))
