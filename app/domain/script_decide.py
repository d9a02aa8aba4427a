"""Decisions about startup scripts: share or upload one for a machine, and let go of those that nobody needs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.instance.events import FetchOutcome, ScriptAssigned, ScriptFetched
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.scripts import (
    ScriptDeleted,
    ScriptDeletionAttempted,
    ScriptEnd,
    ScriptUploadAttempted,
    ScriptUploaded,
    StartupScript,
    script_name,
)
from app.errors import RuleViolation

_LISTED_AFTER = timedelta(minutes=5)
"""What was ordered before a claim is listed by then, and taken over."""

_FETCHES_TOLD = 10
"""Requests with one token that are written down; whoever has it could fill the log with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareScript:
    """A machine is about to be ordered and needs a script with this digest.

    `token_digest` is that of the one-time token in it, if the script is one that fetches another.
    """

    instance: str
    attempt: int
    digest: str
    token_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordScriptUploaded:
    """The upload for a machine was answered with an id."""

    instance: str
    script: str
    script_id: str
    token_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptScriptDelete:
    """Write down that scripts are being deleted, those that nobody needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordScriptDeleted:
    """A script is not at the cloud; `script_id` None if it never was."""

    script: str
    script_id: str | None
    reason: ScriptEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFetch:
    """Somebody at `source` asks for the script of an instance and has shown its token."""

    instance: str
    source: str


ScriptCommand = PrepareScript | RecordScriptUploaded | AttemptScriptDelete | RecordScriptDeleted | RecordFetch


def prepare_script(command: PrepareScript, books: Books) -> Decision:
    """Take a script of the same content if there is one, else write down that one is uploaded."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.create_is_open or instance.attempt != command.attempt:
        return Decision()
    known = next(
        (script for script in books.cloud.scripts.values() if script.digest == command.digest and script.is_usable),
        None,
    )
    if known is not None:
        return Decision((_assigned(instance, known.name, str(known.script_id), command.token_digest),))
    name = script_name(books.installation.installation_id, instance.name, command.attempt)
    attempted = ScriptUploadAttempted(
        script=name, instance=instance.name, node_group=instance.node_group, digest=command.digest
    )
    return Decision((attempted,))


def record_script_uploaded(command: RecordScriptUploaded, books: Books) -> Decision:
    """It is there, and the machine is ordered with it if it is still to be ordered."""
    script = books.cloud.scripts.get(command.script)
    instance = books.instances.get(command.instance)
    if script is None or script.script_id is not None:
        return Decision()
    uploaded = ScriptUploaded(script=command.script, script_id=command.script_id)
    if instance is None or not instance.create_is_open:
        return Decision((uploaded,))
    return Decision((uploaded, _assigned(instance, command.script, command.script_id, command.token_digest)))


def _assigned(instance: Instance, script: str, script_id: str, token_digest: str | None) -> ScriptAssigned:
    return ScriptAssigned(
        instance=instance.name,
        node_group=instance.node_group,
        script=script,
        script_id=script_id,
        token_digest=token_digest,
    )


def attempt_script_delete(books: Books, now: datetime) -> Decision:
    """Every script that no machine needs. One whose deletion was begun stays begun: the job repeats the call."""
    events: tuple[Event, ...] = tuple(
        ScriptDeletionAttempted(script=script.name, script_id=script.script_id)
        for script in unneeded_scripts(books, now)
        if script.script_id is not None and not script.deleting
    )
    return Decision(events)


def record_script_deleted(command: RecordScriptDeleted, books: Books) -> Decision:
    """For the audit, also of one that the books did not know."""
    known = books.cloud.scripts.get(command.script)
    if command.reason is not ScriptEnd.LEFT_BEHIND and known is None:
        return Decision()
    if command.reason is ScriptEnd.NEVER_UPLOADED and known is not None and known.script_id is not None:
        return Decision()  # its upload was answered while somebody looked for it
    return Decision((ScriptDeleted(script=command.script, script_id=command.script_id, reason=command.reason),))


def unneeded_scripts(books: Books, now: datetime) -> tuple[StartupScript, ...]:
    """Scripts that are at the cloud and for which no machine is wanted, coming, or lately come."""
    if not books.cloud.scripts:
        return ()
    needed = {
        instance.script
        for instance in books.listed_instances()
        if instance.script is not None and _needs_its_script(instance, books, now)
    }
    return tuple(
        script for script in books.cloud.scripts.values() if script.script_id is not None and script.name not in needed
    )


def abandoned_installations(books: Books, now: datetime) -> tuple[str, ...]:
    """Installations that we took over and that have no use for their scripts any more.

    Not those of which a machine is left that is not ours, as one that was made after the claim. Their books are lost,
    and with them who has which script: each stays as long as any machine that was taken over may need its own.
    """
    adopted = (one for one in books.listed_instances() if one.attempt == 0 and one.instance_id is not None)
    if not books.installation.claims or any(_needs_its_script(instance, books, now) for instance in adopted):
        return ()
    going_on = {orphan.installation for orphan in books.cloud.orphans.values()}
    return tuple(
        claim.installation_id
        for claim in books.installation.claims
        if claim.installation_id not in going_on and now - claim.at >= _LISTED_AFTER
    )


def _needs_its_script(instance: Instance, books: Books, now: datetime) -> bool:
    """Until the machine has run for a while: nobody promises that the text is copied when a machine is ordered."""
    if instance.state in {InstanceState.REQUESTED, InstanceState.SUBMITTING, InstanceState.PROVISIONING}:
        return True
    if instance.state not in {InstanceState.RUNNING, InstanceState.STOPPED} or instance.running_at is None:
        return False
    return now - instance.running_at < books.groups[instance.node_group].spec.startup_script_keep


def may_fetch(instance: Instance) -> bool:
    """Its script would be served now."""
    is_wanted = instance.state.is_live and instance.state is not InstanceState.FAILED
    return instance.script_token is not None and not instance.script_fetches and is_wanted


def record_fetch(command: RecordFetch, books: Books) -> Decision:
    """Served once, while the machine is wanted. Refusals are written down too, a few of them: tokens may leak.

    Raises:
        RuleViolation: nothing is to be served.
    """
    instance = books.instances.get(command.instance)
    if instance is None or instance.script_token is None or instance.state.is_ended:
        return Decision(refusal=RuleViolation("no script is kept for this machine", instance=command.instance))
    if instance.script_fetches:
        outcome, words = FetchOutcome.ALREADY_FETCHED, "the script was fetched before"
    elif not instance.state.is_live or instance.state is InstanceState.FAILED:
        outcome, words = FetchOutcome.NOT_WANTED, "the machine is not wanted any more"
    else:
        outcome, words = FetchOutcome.SERVED, ""
    fetched = ScriptFetched(
        instance=instance.name, node_group=instance.node_group, source=command.source, outcome=outcome
    )
    events = (fetched,) if instance.script_fetches < _FETCHES_TOLD else ()
    if outcome is FetchOutcome.SERVED:
        return Decision(events)
    return Decision(events, RuleViolation(words, instance=instance.name))
