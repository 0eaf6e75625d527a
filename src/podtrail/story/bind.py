"""Why a bind was refused, in the API server's words."""

import re
from typing import Final, NamedTuple

_RUNNING = re.compile(r'running (?P<point>\w+) plugin "(?P<plugin>[^"]+)": (?P<why>.*)', re.DOTALL)
_FORBIDDEN = re.compile(r'pods "[^"]*" is forbidden: (?P<why>.*)', re.DOTALL)
_POLICY = re.compile(r"ValidatingAdmissionPolicy '(?P<name>[a-z0-9][a-z0-9.-]{0,252})' with binding")
_WEBHOOK = re.compile(r'admission webhook "[^"]+" denied')
_DENIED = re.compile(r"(?i)is forbidden|denied|admission|exceeded quota|conflict")
BIND: Final = "Bind"
"""Who refused where the error names no plugin."""


class BindRefusal(NamedTuple):
    """A refused bind."""

    plugin: str
    """The plugin that was to bind; "" where the error does not name it."""
    why: str
    """Without the Pod's name, so that Pods refused alike read alike."""
    by_api_server: bool
    """The error is an answer of the API server."""
    look: str
    """A command that shows what refused; "" where that can't be told. It has no text that a shell would act on."""

    def __str__(self) -> str:
        return f"{self.plugin or BIND}: {self.why}"


def read_bind_refusal(error: str) -> BindRefusal:
    """Return what the error of a bind tells."""
    running = _RUNNING.fullmatch(error)
    plugin, why = (running["plugin"], running["why"]) if running else ("", error)
    forbidden = _FORBIDDEN.fullmatch(why)
    why = forbidden["why"] if forbidden else why
    look = ""
    if policy := _POLICY.search(why):
        look = f"kubectl get validatingadmissionpolicy {policy['name']} -o yaml"
    elif _WEBHOOK.search(why):
        look = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
    return BindRefusal(plugin, why, forbidden is not None or _DENIED.search(why) is not None, look)
