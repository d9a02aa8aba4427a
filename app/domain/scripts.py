"""Startup scripts of ours at the cloud: uploaded for machines, deleted by us when nobody needs them any more.

The log knows names, ids and digests, never a text: that may hold secrets.
"""

from __future__ import annotations  # HashTrieMap cannot be subscripted at run time

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, assert_never

from rpds import HashTrieMap

from app.domain.envelope import CloudEvent, Recorded

NAME_PREFIX = "ca:v1"


def script_name(installation: str, instance: str, attempt: int) -> str:
    """Unique, and ours by its looks: `ca:v1:<installation>:<instance>:<attempt>`."""
    return f"{NAME_PREFIX}:{installation}:{instance}:{attempt}"


def is_script_name(name: str, installation: str) -> bool:
    """Whether this installation gave the name."""
    return name.startswith(f"{NAME_PREFIX}:{installation}:")


class ScriptEnd(StrEnum):
    """Why an uploaded script is no more."""

    NO_LONGER_NEEDED = "no-longer-needed"
    LEFT_BEHIND = "left-behind"
    NEVER_UPLOADED = "never-uploaded"


class ScriptUploadAttempted(CloudEvent):
    """The intent: the very next thing is the upload, under a name that is never used again."""

    type: ClassVar[str] = "cloud.script-upload-attempted"
    words: ClassVar[str] = "uploading startup script {script} for {instance}"
    script: str
    instance: str
    node_group: str
    digest: str


class ScriptUploaded(CloudEvent):
    """The script is at the cloud under this id."""

    type: ClassVar[str] = "cloud.script-uploaded"
    words: ClassVar[str] = "startup script {script} is uploaded as {script_id}"
    script: str
    script_id: str


class ScriptDeletionAttempted(CloudEvent):
    """The intent to delete it: from now on no machine is ordered with it."""

    type: ClassVar[str] = "cloud.script-deletion-attempted"
    words: ClassVar[str] = "deleting startup script {script} ({script_id})"
    script: str
    script_id: str


class ScriptDeleted(CloudEvent):
    """The script is no longer at the cloud."""

    type: ClassVar[str] = "cloud.script-deleted"
    words: ClassVar[str] = "startup script {script} is gone ({reason})"
    script: str
    script_id: str | None
    reason: ScriptEnd


AnyScriptEvent = ScriptUploadAttempted | ScriptUploaded | ScriptDeletionAttempted | ScriptDeleted


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupScript:
    """A script that is at the cloud or may be. `script_id` is None until the upload was answered."""

    name: str
    digest: str
    script_id: str | None
    deleting: bool
    since: datetime

    @property
    def is_usable(self) -> bool:
        """A machine can be ordered with it."""
        return self.script_id is not None and not self.deleting


def evolve(
    scripts: HashTrieMap[str, StartupScript], recorded: Recorded[AnyScriptEvent]
) -> HashTrieMap[str, StartupScript]:
    """Fold one event about a script."""
    event = recorded.event
    known = scripts.get(event.script)
    match event:
        case ScriptUploadAttempted():
            begun = StartupScript(
                name=event.script, digest=event.digest, script_id=None, deleting=False, since=recorded.recorded_at
            )
            return scripts.insert(event.script, begun)
        case ScriptUploaded():
            return scripts if known is None else scripts.insert(known.name, replace(known, script_id=event.script_id))
        case ScriptDeletionAttempted():
            return scripts if known is None else scripts.insert(known.name, replace(known, deleting=True))
        case ScriptDeleted():
            return scripts.discard(event.script)
        case _:
            assert_never(event)
