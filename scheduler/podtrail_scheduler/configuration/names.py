"""Names of the API: what is wrong with a label key, a label value or the name of an extended resource."""

import re

_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'({_KEY})?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_LONGEST_NAME = 63
_LONGEST_SUBDOMAIN = 253
_NATIVE = "kubernetes.io/"
_QUOTA = "requests."


def label_key_errors(key: str) -> list[str]:
    """What is wrong with a label key (a qualified name), in the API's words."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        return [
            f"a valid label key {_KEY_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    errors = []
    for prefix in prefixes:
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors += [f"prefix part {each}" for each in _subdomain_errors(prefix)]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_NAME:
        errors.append(f"name part must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(_KEY, name):
        errors.append(f"name part {_KEY_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """What is wrong with a label value, in the API's words."""
    errors = []
    if len(value.encode()) > _LONGEST_NAME:
        errors.append(f"must be no more than {_LONGEST_NAME} bytes")
    if not re.fullmatch(f"({_KEY})?", value):
        errors.append(_VALUE_RULE)
    return errors


def is_extended_resource(name: str) -> bool:
    """Whether a well-formed name is one of a resource outside of Kubernetes."""
    native = "/" not in name or _NATIVE in name
    return not native and not name.startswith(_QUOTA) and not label_key_errors(_QUOTA + name)


def _subdomain_errors(value: str) -> list[str]:
    errors = []
    if len(value.encode()) > _LONGEST_SUBDOMAIN:
        errors.append(f"must be no more than {_LONGEST_SUBDOMAIN} bytes")
    if not re.fullmatch(_SUBDOMAIN, value):
        errors.append(_SUBDOMAIN_RULE)
    return errors
