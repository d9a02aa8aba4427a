"""Where a group's startup script comes from, and the values that fill it in."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from app.startup.template import ScriptError, render
from app.startup.variables import Birth, machine_variables

READY_MADE: Final = ("k3s", "kubeadm", "rke2")
"""Templates that come with the program, by the name an operator gives."""

LARGEST: Final = 64 * 1024
"""Bytes of a finished script. Verda publishes no limit; this is what clouds with cloud-init take at most."""

ReadValue = Callable[[], str]
"""Reads a value now: a file's may have been renewed since the start. Raises: ScriptError."""


@dataclass(frozen=True, slots=True)
class Script:
    """A finished script. It may hold secrets: shown nowhere, remembered by its digest alone."""

    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """The same for the same text, and nothing that leads back to it."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


SAMPLE_TOKEN: Final = "abcdef.0123456789abcdef"  # noqa: S105 - nobody's
"""Stands for a token that is made for each machine, where a script is only tried. Kubernetes' own example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSource:
    """A group's template with its values. `minted` are those made anew for each machine, with their time to live."""

    template: str = field(repr=False)
    values: Mapping[str, ReadValue] = field(default_factory=dict, repr=False)
    minted: Mapping[str, timedelta] = field(default_factory=dict)

    def trial(self, birth: Birth) -> Script:
        """The script with samples in the place of what would be made for the machine.

        Raises:
            ScriptError: as `script` does.
        """
        return self.script(birth, dict.fromkeys(self.minted, SAMPLE_TOKEN))

    def script(self, birth: Birth, more: Mapping[str, str] | None = None) -> Script:
        """The script for one machine; `more` are values of ours besides the operator's.

        Raises:
            ScriptError: a value cannot be read, the template uses a name that nobody gave, or the result is no script.
        """
        values = {name: read() for name, read in self.values.items()} | dict(more or {})
        unmade = [name for name in self.minted if name not in values]
        if unmade:
            raise ScriptError(f"cannot have {unmade[0]}: only the provider itself makes it, for each machine")
        text = render(self.template, machine_variables(birth), values)
        if not text.startswith("#!"):
            raise ScriptError("does not begin with #!: begin it with a line like #!/bin/bash", 1)
        size = len(text.encode("utf-8", "replace"))
        if size > LARGEST:
            raise ScriptError(f"makes a script of {size} bytes, at most {LARGEST} are possible")
        return Script(text)
