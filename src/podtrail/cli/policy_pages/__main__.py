"""`python -m podtrail.cli.policy_pages`: write docs/policies of the repository that one stands in."""

from pathlib import Path

import click

from podtrail.cli.policy_pages import pages


def main() -> None:
    """Write all pages and remove those that belong to no policy any more."""
    directory = Path("docs") / "policies"
    written = pages(directory)
    for stale in sorted(path for path in directory.glob("*.md") if path.name not in written):
        stale.unlink()
        click.echo(f"{stale} removed")
    for name, text in written.items():
        path = directory / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            click.echo(f"{path} written")


if __name__ == "__main__":
    main()
