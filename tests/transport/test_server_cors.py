"""Cross-origin requests: who may, and what the browser is told."""

import pytest

from podtrail.transport.cors import cors_headers, preflight_headers
from podtrail.transport.settings import CorsSettings


@pytest.mark.parametrize(
    ("pattern", "origin", "allowed"),
    [
        ("https://a.example", "https://a.example", True),
        ("https://a.example", "https://A.example", True),
        ("https://a.example", "https://a.example.org", False),
        ("https://*.example", "https://a.example", True),
        ("https://*.example", "https://.example", True),
        ("https://*.example", "http://a.example", False),
        ("ab*ba", "aba", False),
        ("*", "null", True),
    ],
)
def test_an_origin_is_allowed_by_its_pattern(pattern: str, origin: str, allowed: bool) -> None:
    settings = CorsSettings(allowed_origins=[pattern])
    assert bool(cors_headers(settings, origin)) is allowed
    assert bool(preflight_headers(settings, {"Origin": origin})) is allowed


def test_without_settings_or_origin_nothing_is_said() -> None:
    assert cors_headers(None, "https://a.example") == {}
    assert cors_headers(CorsSettings(allowed_origins=["*"]), None) == {}
    assert preflight_headers(None, {"Origin": "https://a.example"}) == {}


def test_any_header_means_those_that_are_asked_for() -> None:
    settings = CorsSettings(allowed_origins=["*"], allowed_headers=["*"])
    asked = {"Origin": "https://a.example", "Access-Control-Request-Headers": "x-tenant, authorization"}
    assert preflight_headers(settings, asked)["Access-Control-Allow-Headers"] == "x-tenant, authorization"
