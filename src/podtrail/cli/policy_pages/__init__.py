"""Writes a page for each policy of `tail_sampling`: `python -m podtrail.cli.policy_pages` in the repository.

What a page says comes from the policy itself (the docstrings of its module and class, its settings, its lints) and from
an example that is run: `docs/policies/examples/<type>.yaml`, a configuration and traces with what is to become of them.
"""

from podtrail.cli.policy_pages.pages import pages

__all__ = ["pages"]
