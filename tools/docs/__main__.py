"""`./dev docs [--check]`: every generated page of docs/ at once, written anew or, with --check, compared.

So are the dashboards of docker/monitoring/ and, where Helm is, docker/kubernetes/ from the chart (manifests.py).

Exit code 1 with --check: a page is not what the code says, or belongs to nothing any more.
"""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from podtrail.component import registry
from tools.docs import (
    cli,
    components,
    configuration,
    dashboards,
    manifests,
    metrics,
    policies,
    rooms,
    scaling,
    scheduler,
)

DOCS = Path(__file__).parents[2] / "docs"


def generated(docs: Path) -> Mapping[Path, str]:
    """Return the text of every generated page of a folder of documentation, by path.

    Raises:
        ValueError: a policy has no example or one that is not as it says, or a page lacks its marks.
    """
    of_policies = {docs / "policies" / name: text for name, text in policies.pages(docs / "policies").items()}
    examples = docs.parent / "examples" / "components"
    in_grafana = docs.parent / "docker" / "monitoring" / "dashboards"
    of_components = sorted((docs / "components").glob("*.md"))
    return {
        **{path: components.with_code(path.read_text("utf-8"), examples) for path in of_components},
        docs / "cli.md": cli.page(),
        docs / "configuration.md": configuration.reference(registry.all_factories()),
        docs / "metrics.md": metrics.page(DOCS.parent),
        docs / "rooms.md": rooms.page(DOCS.parent),
        docs / "scaling.md": scaling.replaced((docs / "scaling.md").read_text("utf-8")),
        docs / "scheduler.md": scheduler.replaced((docs / "scheduler.md").read_text("utf-8")),
        **of_policies,
        **{in_grafana / name: text for name, text in dashboards.files().items()},
    }


def of_the_chart(root: Path) -> Mapping[Path, str]:
    """Return the text of what comes of charts/podtrail, by path; without Helm, which is then said, only its copies."""
    program = manifests.helm()
    if program is None:
        print("docker/kubernetes/ was not compared with the chart: there is no helm; tests/helm/build.sh builds it")
    of_helm = manifests.rendered(root, program) if program else {}
    return {**of_helm, **manifests.with_image(root), **manifests.copied(root)}


def stale(docs: Path, pages: Mapping[Path, str]) -> list[Path]:
    """Return the pages that are not as they should be: changed, missing, or of a policy that is gone."""
    changed = [path for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text]
    return changed + [path for path in sorted((docs / "policies").glob("*.md")) if path not in pages]


def main() -> int:
    """Write the pages that have changed, or name them; return the exit code."""
    parser = argparse.ArgumentParser(prog="./dev docs", description="Write the generated pages of docs/.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is stale")
    check = parser.parse_args().check
    pages = {**generated(DOCS), **of_the_chart(DOCS.parent)}
    found = stale(DOCS, pages)
    for path in found:
        if not check and path in pages:
            path.write_text(pages[path], encoding="utf-8")
        elif not check:
            path.unlink()
        done = "is stale, run: ./dev docs" if check else "written" if path in pages else "removed"
        print(f"{path.relative_to(DOCS.parent)} {done}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
