import re
import subprocess
import sys
from importlib.resources import files

import pytest

STYLES = (
    (files("podtrail.pages") / "templates" / "common.css").read_text(),
    (files("podtrail_extensions.viewer") / "static" / "podtrail.css").read_text(),
)
LIGHT, DARK = (
    {name: colour for block in blocks for name, colour in re.findall(r"--([\w-]+): (#\w+);", block)}
    for blocks in zip(*(re.findall(r":root \{(.*?)\}", style, re.DOTALL) for style in STYLES), strict=True)
)
ON_SURFACES = [(ink, surface) for ink in ("text", "dim", "link") for surface in ("page", "card", "mark")]
ON_THEIR_OWN = [(ink, f"{ink}-soft") for ink in ("red", "amber", "green", "blue", "purple")]


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours after WCAG 2."""
    lights = sorted(luminance(colour) + 0.05 for colour in (first, second))
    return lights[1] / lights[0]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [LIGHT, {**LIGHT, **DARK}], ids=["light", "dark"])
def test_words_can_be_read_and_bars_be_seen_in_either_scheme(scheme: dict[str, str]) -> None:
    for ink, surface in [*ON_SURFACES, *ON_THEIR_OWN, ("text", "red-soft"), ("text", "amber-soft"), ("card", "link")]:
        assert contrast(scheme[ink], scheme[surface]) >= 4.5, (ink, surface)
    for bar in ("h0", "h1", "h2", "h3", "h4", "h5", "bad"):
        assert contrast(scheme[bar], scheme["card"]) >= 3, bar


@pytest.mark.parametrize("module", ["viewer", "health_check"])
def test_checking_a_configuration_loads_no_server(module: str) -> None:
    heavy = "{'aiohttp', 'grpc', 'jinja2'} & set(sys.modules)"
    code = f"import sys, podtrail_extensions.{module}; sys.exit(str({heavy}) if {heavy} else 0)"
    subprocess.run([sys.executable, "-c", code], check=True)
