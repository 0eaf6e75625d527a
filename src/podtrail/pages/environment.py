"""The template environment that pages and reports share.

Every value that a template puts out passes `finalize`: control and direction characters become visible, long text is
cut in the middle. What that returns is escaped by jinja2; nothing here marks text as safe.
"""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from podtrail.pages.chart import AXIS
from podtrail.story import DECISION_WORDS, POD_STATES, SLOW, VOTE_WORDS, several, stamp, visible
from podtrail.story.words import clip


class FullText(str):
    """Text that a template shows in full length: the filter `whole`."""

    __slots__ = ()


def environment(package: str, longest: int) -> Environment:
    """Return an environment with the templates of this room and those in a package's folder `templates`.

    Args:
        package: whose templates these are; one may extend `skeleton.html` and include `common.css`.
        longest: characters of a text from elsewhere; what is longer is cut in the middle.
    """
    sources = {
        one.name: one.read_text(encoding="utf-8")
        for room in (__package__, package)
        for one in (files(room) / "templates").iterdir()
        if one.is_file()
    }

    def finalize(value: object) -> object:
        """Return what a template may put out in place of a value."""
        if isinstance(value, Markup) or not isinstance(value, str):
            return value
        return visible(value if isinstance(value, FullText) else clip(value, longest))

    made = Environment(
        loader=DictLoader(sources),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"number": number, "whole": FullText, "iso": stamp}
    made.globals |= {
        "axis": AXIS,
        "decision_words": DECISION_WORDS,
        "pod_states": POD_STATES,
        "slow_state": SLOW,
        "several": several,
        "vote_words": VOTE_WORDS,
    }
    return made


def number(value: int | None) -> str:
    """Return a number with its thousands apart; `-` for None."""
    return "-" if value is None else f"{value:,}"


def inline_hash(made: Environment, name: str) -> str:
    """Return how a Content-Security-Policy names the inline style or script that a template comes to (CSP Level 3)."""
    return "sha256-" + b64encode(sha256(made.get_template(name).render().encode()).digest()).decode()
