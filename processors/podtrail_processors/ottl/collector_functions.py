"""Functions of OTTL that the Collector (contrib v0.161) has and podtrail does not."""

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CONVERTERS: Final = _words(
    "All Any CommunityID ConvertAttributesToElementsXML ConvertTextToElementsXML ExtractGrokPatterns Filter Find "
    "GetXML HasAttrKeyOnDatapoint HasAttrOnDatapoint InsertXML MapEach MapKeys ParseCEF ParseCLF ParseELF ParseLEEF "
    "ParseSeverity ParseSimplifiedXML ParseXML ProfileID Reduce RemoveXML UUID UUIDv7 UserAgent When XXH128 "
    "XXH3"
)
EDITORS: Final = _words(
    "append clear copy_metric delete_index delete_key delete_matching_keys flatten keep_keys keep_matching_keys "
    "limit merge_maps replace_all_matches replace_all_patterns replace_match replace_pattern set set_semconv_span_name "
    "stringify_all truncate_all"
)


def only_there(name: str) -> str:
    """Return a sentence about a function that only the Collector has; "" for all others."""
    if name in CONVERTERS:
        return f"the Collector has the function {name!r}, podtrail does not: let a Collector filter by it"
    if name in EDITORS:
        return f"{name!r} changes data, which a condition can't: let a Collector's transform processor do it"
    return ""
