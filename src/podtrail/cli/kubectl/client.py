"""kubectl as a child: with the context that was chosen, what it prints, what it says when it can't."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_SECONDS: Final = 30.0


class KubectlError(Exception):
    """The cluster can't be asked, or not for this; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl, with the options that say which cluster and who asks."""

    flags: Sequence[str] = ()

    def command(self, *arguments: str) -> list[str]:
        """Return the whole command.

        Raises:
            KubectlError: there is no kubectl.
        """
        program = shutil.which("kubectl")
        if program is None:
            raise KubectlError("there is no kubectl on the PATH: kubectl podtrail finds podtrail by it")
        return [program, *self.flags, *arguments]

    def get(self, *arguments: str) -> Mapping[str, Any]:
        """Return what `kubectl get` prints as JSON.

        Raises:
            KubectlError: it fails, takes longer than half a minute or prints something else.
        """
        try:
            read = json.loads(self._output("get", *arguments, "--output", "json"))
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise KubectlError("kubectl get prints no JSON: is the kubectl on the PATH a wrapper?")
        return read

    def namespace(self) -> str:
        """Return the namespace that the context names; "" where it names none.

        Raises:
            KubectlError: kubectl fails.
        """
        return self._output("config", "view", "--minify", "--output", "jsonpath={..namespace}").strip()

    def _output(self, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the user's own kubectl, no shell
                self.command(*arguments),
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise KubectlError(f"kubectl {arguments[0]} has not answered for {_SECONDS:.0f} s") from None
        except OSError as error:
            raise KubectlError(f"kubectl can't be run: {error.strerror}") from None
        if done.returncode:
            said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
            raise KubectlError(f"kubectl {arguments[0]}: {said}")
        return done.stdout
