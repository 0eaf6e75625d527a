"""axe-core: what it finds wrong with a page for those who don't see it, or don't use a mouse."""

from functools import cache
from importlib.resources import files

from tests.extensions.browser import Browser

_RUN = """
axe.run(document, {resultTypes: ["violations"]RULES}).then((told) => told.violations.map((one) =>
  `${one.id} (${one.impact}): ${one.help}: ` +
  one.nodes.slice(0, 3).map((node) => `${node.target} ${node.html.slice(0, 160)} ${node.failureSummary}`).join("; ")))
"""


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


async def violations(browser: Browser, *, of_colour: bool = False) -> list[str]:
    """Return the rules that the open page breaks, or those about colours alone, each with some of the places."""
    await browser.says(f"{_script()};0")
    rules = ", runOnly: ['color-contrast', 'link-in-text-block']" if of_colour else ""
    found: list[str] = await browser.says(_RUN.replace("RULES", rules))
    return found
