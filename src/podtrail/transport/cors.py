"""Cross-origin requests of web pages, as the Fetch standard has them."""

from collections.abc import Mapping

from podtrail.transport.settings import CorsSettings


def cors_headers(settings: CorsSettings | None, origin: str | None) -> dict[str, str]:
    """Return the headers that let a page of `origin` read the answer; none when it may not."""
    if settings is None or origin is None or not _allowed(settings, origin):
        return {}
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def preflight_headers(settings: CorsSettings | None, request: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that answer the question whether a page may send; none when it may not."""
    allowed = cors_headers(settings, request.get("Origin"))
    if settings is None or not allowed:
        return {}
    allowed["Access-Control-Allow-Methods"] = "POST"
    asked = request.get("Access-Control-Request-Headers", "")
    headers = asked if "*" in settings.allowed_headers else ", ".join(["Content-Type", *settings.allowed_headers])
    if headers:
        allowed["Access-Control-Allow-Headers"] = headers
    if settings.max_age:
        allowed["Access-Control-Max-Age"] = str(settings.max_age)
    return allowed


def _allowed(settings: CorsSettings, origin: str) -> bool:
    return any(_matches(pattern.lower(), origin.lower()) for pattern in settings.allowed_origins)


def _matches(pattern: str, origin: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == origin
    return len(origin) >= len(before) + len(after) and origin.startswith(before) and origin.endswith(after)
