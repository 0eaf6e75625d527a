"""Every policy has a page, made from an example that runs; the pages in docs/policies are those."""

import re
from pathlib import Path

import pytest

from tools.docs.policies import pages, policy_types
from tools.docs.policy_example import read_example

DIRECTORY = Path(__file__).parents[3] / "docs" / "policies"
TYPES = [kind.name for kind in policy_types()]


@pytest.fixture(scope="module", name="made")
def _made() -> dict[str, str]:
    """Return the pages as they should be. Making them fails when an example is not as it says."""
    return dict(pages(DIRECTORY))


def test_every_policy_has_an_example_and_every_example_a_policy() -> None:
    assert {path.stem for path in (DIRECTORY / "examples").glob("*.yaml")} == set(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_a_page_shows_what_is_kept_and_what_is_not(name: str, made: dict[str, str]) -> None:
    example = read_example(DIRECTORY / "examples" / f"{name}.yaml")
    table = made[f"{name}.md"].partition("| Trace |")[2]
    assert len(re.findall(r"^\| ", table.partition("\n\n")[0], re.MULTILINE)) == 1 + len(example.told.traces)
    if name != "always_sample":
        kept = [trace.kept for trace in example.told.traces]
        assert any(kept)
        assert not all(one is True for one in kept), "an example of what is not kept is missing"


def test_an_example_that_is_not_as_it_says_is_an_error(tmp_path: Path) -> None:
    directory = tmp_path / "docs" / "policies"
    (directory / "examples").mkdir(parents=True)
    for path in (DIRECTORY / "examples").glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        changed = text.replace("kept: true", "kept: false") if path.stem == "always_sample" else text
        (directory / "examples" / path.name).write_text(changed, encoding="utf-8")
    with pytest.raises(ValueError, match="always_sample: any trace: 1 of 1 kept, not as the example says"):
        pages(directory)


def test_a_policy_without_an_example_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every policy has an example"):
        pages(tmp_path / "docs" / "policies")
