"""What is taken for a secret: keys that sound like one, users and queries of URLs, well-known shapes; and what is one.

Secrets of the configuration that was read are remembered for the whole process (`remember_secrets`), so that no log,
error or answer repeats them, wherever a library has put them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

REDACTED: Final = "[REDACTED]"
_SOUNDS_SECRET: Final = re.compile(
    r"(?i)pas+w|secret|token|credential|authoriz|api[-_.]?key|access[-_.]?key|private[-_.]?key|cookie|bearer|dsn|pwd"
)
_OPENLY: Final = re.compile(r"(?i)(file|path|url|name|names|seconds|timeout|format|header|digits)$")
"""What is said about a secret, not the secret: `password_file`."""
_USER: Final = re.compile(
    r"""(?<=//)(?:
        [^/?\#@:\s"']{1,128}:(?!\d{1,5}(?:[/?\#]|$))[^\s"']{0,256}@(?=[\w.\[-])  # a password may have / and @
        |[^/?\#\s"']*@
    )""",
    re.VERBOSE,
)
_SHAPES: Final = re.compile(
    r"""(?:
        (?i:\bbearer|\btoken|\bbasic|\bapikey)\s+(?=[\w.~+/-]*(?:[\d=]|(?-i:[a-z][A-Z])))(?P<scheme>[\w.~+/-]{8,}=*)
        |(?i:pas+w(?:or)?d|passphrase|pwd|secret|token|(?:api|account|access|private|shared)[-_.]?key|signature|\bsig)(?:
            \ ?=\ ?(?!\$\{)(?P<pair>[^;&\s"',\\]+)
            |\\?["']?\s?[:=]\s?\\?(?P<quote>["'])(?!\$\{)(?P<quoted>(?:(?!(?P=quote))[^\\\n]|\\.)+)
            |["']?\s?:\s(?![/.]|\$\{)(?=[^\s"',]*\d)(?P<line>[^\s"',]{6,})
        )
        |(?i:authorization|cookie|bearer)["']?\s?:\s(?!\$\{)(?:\w+\s)?(?=[^\s"',]*\d)(?P<header>[^\s"',]{6,})
        |--(?:password|passphrase|token|secret|api-key)\s(?=\S*\d)(?P<option>[^\s"']{6,})
        |(?<![\w/.@+-])[\w.+-]{1,64}:(?P<user>(?!\d{1,5}\b)[^\s:@/"']{3,128})@(?!sha256:)[\w-]+(?:\.[\w-]+|:\d)
        |(?<![\w/.@+-])[\w.+-]{1,64}:(?=[^\s:@/"']{0,128}\d)(?P<local>(?!\d{1,5}\b)[^\s:@/"']{6,128})@(?!sha256:)[\w-]+
        |(?P<whole>
            \beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?
            |\b(?:AKIA|ASIA)[0-9A-Z]{16}\b
            |\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{8,}
            |\bsk[-_][\w-]{16,}|\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bnpm_\w{20,}|\bpypi-[\w-]{16,}|\bhvs\.[\w-]{16,}
            |\bdt0[a-z]\d\d\.[A-Z0-9]{8,}(?:\.[A-Z0-9]+)?|\bgl(?:c|sa)_[\w+/=]{20,}|\bSG\.[\w-]{16,}\.[\w-]{16,}
            |\bAGE-SECRET-KEY-[0-9A-Z]{20,}
            |(?<=hooks\.slack\.com/services/)\S+|(?<=discord\.com/api/webhooks/)\S+
            |-----BEGIN[A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----.*?(?:-----END[A-Z ]*PRIVATE\ KEY(?:\ BLOCK)?-----|\Z)
        )
    )""",
    re.VERBOSE | re.DOTALL,
)
"""Values that are secrets wherever they stand: of headers, connection strings, and tokens that say whose they are."""
_QUERY: Final = re.compile(r"(?<=[?&;])[^=&;#\s]*=([^&;#\s]*)")
_URL: Final = re.compile(r"//\S+")
"""It begins with a literal, so that long texts are searched quickly."""
_LEAST: Final = 6
"""Characters of a secret that is looked for in other text: shorter ones are in every word."""
_MOST_KNOWN: Final = 4_096
_known: dict[str, None] = {}
_known_pattern: re.Pattern[str] | None = None
_known_bytes: set[bytes] = set()
_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})
"""As Jinja writes them."""

Stretch = tuple[int, int]
"""From which character of a text to before which."""


def is_secret_key(key: str) -> bool:
    """Return whether the value of a key is taken for a secret."""
    return bool(_SOUNDS_SECRET.search(key)) and not _OPENLY.search(key)


def credentials_in(text: str) -> Iterator[Stretch]:
    """Yield where secrets stand, in no order: remembered ones, users (without `@`) and queries of URLs, shapes."""
    if _known_pattern is not None:
        for known in _known_pattern.finditer(text):
            yield known.span()
    for shape in _SHAPES.finditer(text):
        assert shape.lastgroup is not None, "each alternative has a group"
        yield shape.span(shape.lastgroup)
    for url in _URL.finditer(text):
        user = _USER.search(url[0])
        if user:
            yield url.start() + user.start(), url.start() + user.end() - 1
        for value in _QUERY.finditer(url[0]):
            yield url.start() + value.start(1), url.start() + value.end(1)


def remember_secrets(secrets: Iterable[str]) -> None:
    """Have `redacted` take these out of every text from now on, also as they are written in URLs and in JSON."""
    global _known_pattern
    new = [form for secret in secrets for form in forms_of(secret) if form not in _known]
    if new:
        _known.update(dict.fromkeys(new))
        for oldest in list(_known)[:-_MOST_KNOWN]:
            del _known[oldest]
        _known_pattern = pattern_of(_known)
        _known_bytes.clear()
        _known_bytes.update(form for secret in _known for form in _in_pages(secret))


def forget_secrets() -> None:
    """Forget what `remember_secrets` was given."""
    global _known_pattern
    _known.clear()
    _known_bytes.clear()
    _known_pattern = None


def without_remembered(body: bytes) -> bytes:
    """Return an answer without remembered secrets. One that is a mere word stays: it may be part of the page."""
    if not any(secret in body for secret in _known_bytes):
        return body
    for secret in sorted(_known_bytes, key=len, reverse=True):
        body = body.replace(secret, REDACTED.encode())
    return body


def _in_pages(secret: str) -> Iterator[bytes]:
    if not (secret.isalpha() or secret.isdigit()):
        yield secret.encode("utf-8", "replace")
        yield secret.translate(_ESCAPED).encode("utf-8", "replace")


def forms_of(secret: str) -> Iterable[str]:
    """Return how a secret may be written in other text; nothing for one that is too short to be looked for."""
    forms = (secret, quote(secret, safe=""), quote(secret), quote_plus(secret), unquote(secret), repr(secret)[1:-1])
    return {form for form in (*forms, json.dumps(secret, ensure_ascii=False)[1:-1]) if len(form) >= _LEAST}


def parts_of(secrets: Iterable[str]) -> Iterable[str]:
    """Return secrets and what they are made of: of `Bearer abc` also `abc`, of several lines each."""
    found = {part for secret in secrets for part in (secret, *secret.splitlines())}
    found |= {part for secret in secrets for part in re.split(r"[\s:,=]+", secret) if len(part) >= 2 * _LEAST}
    return {part for part in found if len(part) >= _LEAST}


def pattern_of(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return what finds secrets in a text; of those that are a word or a number only the whole ones."""
    ordered = sorted(secrets, key=len, reverse=True)
    return re.compile("|".join(map(_whole, ordered))) if ordered else None


def _whole(secret: str) -> str:
    letters = "[^\\W\\d_]" if secret.isalpha() else "\\d" if secret.isdigit() else ""
    return f"(?<!{letters}){secret}(?!{letters})" if letters else re.escape(secret)


def redacted(text: str) -> str:
    """Return a text with `REDACTED` in the place of each secret in it."""
    told, at = [], 0
    for start, end in sorted(credentials_in(text)):
        if start >= at:
            told += [text[at:start], REDACTED]
        at = max(at, end)
    return "".join((*told, text[at:]))
