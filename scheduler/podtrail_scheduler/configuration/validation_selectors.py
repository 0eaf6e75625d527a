"""Validates the conditions of a node affinity, given as the API's JSON, with the API's words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .errors import RefusedField, invalid, unsupported
from .names import label_key_errors, label_value_errors

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_FIELD_OPERATORS = ("In", "NotIn")
_INT64 = 2**63


def node_selector_errors(selector: Mapping[str, Any], path: str) -> Iterator[RefusedField]:
    """Errors of a NodeSelector."""
    for index, term in enumerate(selector.get("nodeSelectorTerms") or []):
        yield from _term_errors(term, f"{path}.nodeSelectorTerms[{index}]")


def preferred_terms_errors(terms: Sequence[Mapping[str, Any]], path: str) -> Iterator[RefusedField]:
    """Errors of PreferredSchedulingTerms; one of weight 0 is not looked at."""
    for index, term in enumerate(terms):
        if term.get("weight"):
            yield from _term_errors(term.get("preference") or {}, f"{path}[{index}]")


def _term_errors(term: Mapping[str, Any], path: str) -> Iterator[RefusedField]:
    for index, each in enumerate(term.get("matchExpressions") or []):
        yield from _expression_errors(each, f"{path}.matchExpressions[{index}]")
    for index, each in enumerate(term.get("matchFields") or []):
        here, operator = f"{path}.matchFields[{index}]", each.get("operator", "")
        if operator not in _FIELD_OPERATORS:
            yield unsupported(f"{here}.operator", operator, _FIELD_OPERATORS)
        elif len(each.get("values") or []) != 1:
            yield invalid(f"{here}.values", each.get("values"), "must have one element")


def _expression_errors(expression: Mapping[str, Any], path: str) -> Iterator[RefusedField]:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    given = expression.get("values")
    values = given or []
    if operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", operator, _OPERATORS)
        return
    if errors := label_key_errors(key):
        yield invalid(f"{path}.key", key, "; ".join(errors))
    if operator in ("In", "NotIn") and not values:
        yield invalid(f"{path}.values", given, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        yield invalid(f"{path}.values", given, "values set must be empty for exists and does not exist")
    if operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield invalid(f"{path}.values", given, "for 'Gt', 'Lt' operators, exactly one value is required")
        for index, value in enumerate(values):
            if not _is_integer(value):
                detail = "for 'Gt', 'Lt' operators, the value must be an integer"
                yield invalid(f"{path}.values[{index}]", value, detail)
    for index, value in enumerate(values):
        if errors := label_value_errors(value):
            yield invalid(f"{path}.values[{index}][{key}]", value, "; ".join(errors))


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit() and -_INT64 <= int(text) < _INT64
