"""Which devices meet expressions; answers are kept as long as the slices stay as they are."""

from collections.abc import Mapping, Sequence

from podtrail_scheduler.objects.resource import Device, DeviceAttribute

from .cel import CelError, parse
from .cel.values import Quantity, semver
from .pools import CandidateDevice

_NOTHING: Mapping[str, object] = {}


class UnselectableError(Exception):
    """An expression is not valid, or has no value for a device: the node's answer is an error."""


class _Domains(dict[str, Mapping[str, object]]):
    """Attributes by domain; a domain that a device does not know is empty, not missing."""

    def __missing__(self, domain: str) -> Mapping[str, object]:
        return _NOTHING

    def __contains__(self, domain: object) -> bool:
        return True


class DeviceSelectors:
    """Evaluates expressions for devices."""

    def __init__(self) -> None:
        self._version = -1
        self._answers: dict[tuple[int, str], bool] = {}

    def refresh(self, version: int) -> None:
        """Forgets the answers about slices of an earlier `version`."""
        if version != self._version:
            self._version = version
            self._answers.clear()

    def match(self, owner: str, expressions: Sequence[str], candidate: CandidateDevice) -> bool:
        """Whether the device meets all of them; `owner` names the class or claim in an UnselectableError."""
        for index, text in enumerate(expressions):
            key = id(candidate.device), text
            answer = self._answers.get(key)
            if answer is None:
                answer = self._answers[key] = _answer(f"{owner}: selector #{index}", text, candidate)
            if not answer:
                return False
        return True


def _answer(what: str, text: str, candidate: CandidateDevice) -> bool:
    try:
        expression = parse(text)
    except CelError as error:
        raise UnselectableError(f"{what}: CEL compile error: compilation failed: {error}") from error
    try:
        answer = expression.value({"device": _device(candidate.device, candidate.pool.id.driver)})
        if not isinstance(answer, bool):
            raise CelError(f"CEL result {answer!r} is not a bool")
    except (CelError, RecursionError) as error:
        hint = (
            ". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() "
            "for optional fields"
            if "no such key:" in str(error)
            else ""
        )
        raise UnselectableError(f"{what} on device {candidate.id}: CEL runtime error: {error}{hint}") from error
    return answer


def _device(device: Device, driver: str) -> Mapping[str, object]:
    attributes: dict[str, dict[str, object]] = {}
    for name, attribute in device.attributes.items():
        domain, _, identifier = name.rpartition("/")
        attributes.setdefault(domain or driver, {})[identifier] = _value(name, attribute)
    capacity: dict[str, dict[str, object]] = {}
    for name, held in device.capacity.items():
        domain, _, identifier = name.rpartition("/")
        capacity.setdefault(domain or driver, {})[identifier] = Quantity(held.value)
    return {
        "driver": driver,
        "allowMultipleAllocations": device.allow_multiple_allocations,
        "attributes": _Domains(attributes),
        "capacity": _Domains(capacity),
    }


def _value(name: str, attribute: DeviceAttribute) -> object:
    if not attribute.kind:
        raise CelError(f"attribute {name}: unsupported attribute value")
    if isinstance(attribute.value, tuple):
        return [semver(each) if attribute.kind == "versions" else each for each in attribute.value]
    return semver(attribute.value) if attribute.kind == "version" else attribute.value
