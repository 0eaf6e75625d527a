"""A page asks nobody but its own site, runs nothing that stands in it, and has nothing to complain about."""

import asyncio

import pytest

from tests.page.site_map import answers

pytestmark = pytest.mark.slow
STRICT = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
}


def test_every_answer_has_a_strict_content_security_policy(site: str) -> None:
    for page in asyncio.run(answers(site)):
        policy = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
        assert {key: policy.get(key) for key in STRICT} == STRICT, page
        assert "unsafe" not in page.policy, page
