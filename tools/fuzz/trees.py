"""Changes in trees of maps, lists and scalars, as JSON and YAML have them."""

from collections.abc import Sequence
from random import Random
from typing import Any

SCALARS: Sequence[Any] = (
    *(None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, 0.5, -0.0, 1e308, float("nan")),
    *("", "0", "1", "-1", "18446744073709551616", "NaN", "x", "é", "\x00", "a\nb", "\ud800", "0" * 32, "0" * 16),
)
"""What stands where something else is expected."""


def mutate_tree(tree: Any, random: Random, scalars: Sequence[Any] = SCALARS) -> Any:
    """Return a tree with one thing changed, at any depth."""
    if isinstance(tree, dict) and tree:
        return _mutated_map(tree, random, scalars)
    if isinstance(tree, list) and tree:
        return _mutated_list(tree, random, scalars)
    return _other(tree, random, scalars)


def _mutated_map(tree: dict[Any, Any], random: Random, scalars: Sequence[Any]) -> Any:
    key = random.choice([*tree])
    match random.randrange(10):
        case 0:
            return {k: v for k, v in tree.items() if k != key}
        case 1:
            return {random.choice((*scalars, *tree)) if k == key else k: v for k, v in tree.items()}
        case 2:
            return tree | {key: random.choice([*tree.values()])}
        case 3:
            return _other(tree, random, scalars)
    return tree | {key: mutate_tree(tree[key], random, scalars)}


def _mutated_list(tree: list[Any], random: Random, scalars: Sequence[Any]) -> Any:
    at = random.randrange(len(tree))
    match random.randrange(10):
        case 0:
            return tree[:at] + tree[at + 1 :]
        case 1:
            return [*tree[:at], tree[at], *tree[at:]]
        case 2:
            return random.sample(tree, len(tree))
        case 3:
            return _other(tree, random, scalars)
    return [*tree[:at], mutate_tree(tree[at], random, scalars), *tree[at + 1 :]]


def _other(tree: Any, random: Random, scalars: Sequence[Any]) -> Any:
    match random.randrange(6):
        case 0:
            return [tree]
        case 1:
            return {random.choice(scalars): tree}
        case 2 if isinstance(tree, str) and tree:
            at = random.randrange(len(tree))
            return tree[:at] + random.choice(("", "\\", '"', "\u2028", "::", "${env:X}", "9", tree)) + tree[at + 1 :]
        case 3 if isinstance(tree, int):
            return tree + random.choice((1, -1, 2**32, -(2**63)))
    return random.choice(scalars)
