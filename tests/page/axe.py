"""axe-core: what it finds wrong with a page for those who don't see it, or don't use a mouse."""

from functools import cache
from importlib.resources import files
from typing import Literal

from tests.extensions.browser import Browser

_RUN = """
axe.run(document, {resultTypes: ["violations"]RULES}).then((told) => told.violations.map((one) =>
  `${one.id} (${one.impact}): ${one.help}: ` +
  one.nodes.slice(0, 3).map((node) => `${node.target} ${node.html.slice(0, 160)} ${node.failureSummary}`).join("; ")))
"""
Rules = Literal["all", "of colours", "of all else"]
_RULES = {
    "all": "",
    "of colours": ", runOnly: ['color-contrast', 'link-in-text-block']",
    "of all else": ", rules: {'color-contrast': {enabled: false}, 'link-in-text-block': {enabled: false}}",
}


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def violations(browser: Browser, rules: Rules = "all") -> list[str]:
    """Return the rules that the open page breaks, each with some of the places; those about colours take longest."""
    if await browser.says("window.axe === undefined"):
        await browser.says(f"{_script()};0")
    found: list[str] = await browser.says(_RUN.replace("RULES", _RULES[rules]))
    return found
