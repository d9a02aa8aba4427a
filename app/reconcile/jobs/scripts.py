"""Startup scripts at the cloud: one for each machine before it is ordered, none when nobody needs it any more."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from typing import ClassVar

from app.cloud.port import StoredScript
from app.domain.envelope import Cause
from app.domain.instance.events import CreateAttempted, ScriptAssigned
from app.domain.instance.verdict import JOIN_TOKEN_UNMADE, SCRIPT_QUOTA, SCRIPT_REFUSED, SCRIPT_UNMADE
from app.domain.offering import InstanceType
from app.domain.script_decide import (
    AttemptScriptDelete,
    PrepareScript,
    RecordScriptDeleted,
    RecordScriptUploaded,
    abandoned_installations,
)
from app.domain.scripts import ScriptEnd, ScriptUploadAttempted, StartupScript, is_script_name, script_name
from app.errors import (
    CloudError,
    ClusterError,
    ClusterRefused,
    NotSent,
    OutcomeUnknown,
    Rejected,
    RuleViolation,
)
from app.log import get_logger
from app.reconcile.jobs.job import Bench
from app.startup.sources import Script, ScriptSource
from app.startup.template import ScriptError, packaged
from app.startup.tokens import TokenMint
from app.startup.variables import Birth

_ECHO = 8
"""Characters in a row that the API's words and a script may share by chance."""

_OF_THE_ACCOUNT = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED})
"""Refusals that say nothing about the script: told as they would be for the order."""

_log = get_logger(job="scripts")

ShelfObserver = Callable[[int, int], None]
"""Told after every listing: scripts of ours, scripts of anybody."""


@dataclass(slots=True, kw_only=True)
class Scripts:
    """Deletes our scripts that no machine needs, and those that a crash has left; never anybody else's.

    Those of an installation that was taken over are ours. `under_way` are uploads of this process, from before their
    intent until their answer is in the books.
    """

    name: ClassVar[str] = "scripts"
    bench: Bench
    look_every: timedelta
    observer: ShelfObserver = lambda _ours, _all: None
    under_way: set[str] = field(default_factory=set)
    _looked_at: float | None = None

    def run(self) -> None:
        """Delete what is due, and look now and then for what the books do not know."""
        cause = self.bench.cause(self.name)
        self._delete_unneeded(cause)
        now = self.bench.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < self.look_every.total_seconds():
            return
        if self._may_have_any() and self._sweep(cause) is not None:
            self._looked_at = now

    def make_room(self, cause: Cause) -> int:
        """Delete what can be deleted now, because there is no room for another script; how many."""
        deleted = self._delete_unneeded(cause)
        return deleted + (self._sweep(cause) or 0)

    def _may_have_any(self) -> bool:
        books = self.bench.books
        if books.cloud.scripts or books.installation.claims:
            return True
        return any(group.spec.startup_script for group in books.groups.values())

    def _delete_unneeded(self, cause: Cause) -> int:
        self.bench.record(AttemptScriptDelete(), cause)
        due = [script for script in self.bench.books.cloud.scripts.values() if script.deleting]
        return sum(
            self._delete(script.name, str(script.script_id), ScriptEnd.NO_LONGER_NEEDED, cause) for script in due
        )

    def _delete(self, name: str, script_id: str, reason: ScriptEnd, cause: Cause) -> bool:
        try:
            self.bench.cloud.delete_script(script_id)
        except CloudError as error:
            _log.warning("startup script not deleted yet", script=name, error=error.message)
            return False
        self.bench.record(RecordScriptDeleted(script=name, script_id=script_id, reason=reason), cause)
        return True

    def _sweep(self, cause: Cause) -> int | None:
        """Look at all scripts of the project; how many of ours were deleted, None if they could not be listed."""
        open_uploads = self._interrupted()
        try:
            stored = self.bench.cloud.scripts()
        except CloudError as error:
            _log.warning("startup scripts not listed", error=error.message, code=error.code)
            return None
        books = self.bench.books
        abandoned = abandoned_installations(books, self.bench.clock.now())
        installations = (books.installation.installation_id, *abandoned)
        ours = [item for item in stored if any(is_script_name(item.name, each) for each in installations)]
        deleted = sum(
            self._delete(item.name, item.script_id, ScriptEnd.LEFT_BEHIND, cause) for item in self._left(ours)
        )
        self.observer(len(ours) - deleted, len(stored) - deleted)
        there = {item.name for item in stored}
        for upload in open_uploads:
            if upload.name not in there:
                never = RecordScriptDeleted(script=upload.name, script_id=None, reason=ScriptEnd.NEVER_UPLOADED)
                self.bench.record(never, cause)
        return deleted

    def _interrupted(self) -> list[StartupScript]:
        under_way = frozenset(self.under_way)  # load-bearing: before the books, in which an upload ends first
        scripts = self.bench.books.cloud.scripts.values()
        return [script for script in scripts if script.script_id is None and script.name not in under_way]

    def _left(self, ours: list[StoredScript]) -> Iterator[StoredScript]:
        """Those that the books do not know under this id: an upload without an answer, or a name used twice."""
        for item in ours:
            if item.name in self.under_way:  # load-bearing: asked before the books, in which an upload ends first
                continue
            known = self.bench.books.cloud.scripts.get(item.name)
            if known is None or known.script_id != item.script_id:
                yield item


@dataclass(slots=True, kw_only=True)
class ScriptDesk:
    """Gives every order its startup script; `sources` are the groups whose script is made for each machine.

    With `fetch_url`, the script server's address, what is stored at the cloud is only a stub with a one-time token.

    May be called from several threads at once.
    """

    bench: Bench
    keeper: Scripts
    sources: Mapping[str, ScriptSource]
    fetch_url: str | None = None
    mint: TokenMint | None = None
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _refused: dict[str, Rejected] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def replace_sources(self, sources: Mapping[str, ScriptSource]) -> None:
        """Another configuration is in effect; what was refused may be accepted now."""
        with self._guard:
            self.sources = sources
            self._refused.clear()

    def script_for(self, attempt: CreateAttempted, cause: Cause) -> str | None:
        """The id of the script to order the machine with, None for none.

        Raises:
            CloudError: there is no script, and so nothing was ordered: never OutcomeUnknown.
        """
        spec = self.bench.books.groups[attempt.node_group].spec
        if spec.startup_script is None:
            return spec.startup_script_id
        refused = self._refused.get(attempt.node_group)
        if refused is not None:
            raise Rejected(refused.message, code=refused.code, status=refused.status)
        script, token_digest = self._make(attempt)
        with self._turn(script.digest):
            return self._uploaded(script, token_digest, attempt, cause)

    def _make(self, attempt: CreateAttempted) -> tuple[Script, str | None]:
        """The script to store; the real one is made in any case, so that a mistake in it is known before the order."""
        source = self.sources.get(attempt.node_group)
        if source is None:
            raise Rejected("the configuration has no startup script for it", code=SCRIPT_UNMADE)
        try:
            birth = self._birth(attempt)
            script = source.trial(birth)
            if self.fetch_url is None or self.bench.books.groups[attempt.node_group].spec.startup_script == "url":
                return (source.script(birth, self._minted(source, birth)) if source.minted else script), None
            token = self.bench.ids.token() + self.bench.ids.token()
            stub = ScriptSource(template=packaged("fetch"))
            more = {"fetch_url": self.fetch_url, "fetch_token": token}
            return stub.script(birth, more), hashlib.sha256(token.encode()).hexdigest()
        except ScriptError as error:
            words = error.message
        raise Rejected(f"the startup script {words}", code=SCRIPT_UNMADE)

    def _minted(self, source: ScriptSource, birth: Birth) -> Mapping[str, str]:
        """Join tokens for this machine alone."""
        if self.mint is None:
            raise ScriptError("needs a join token, and the cluster side is off")
        try:
            return {name: self.mint.mint(birth.name, ttl) for name, ttl in source.minted.items()}
        except ClusterRefused as error:
            reason: CloudError = Rejected(error.message, code=JOIN_TOKEN_UNMADE)
        except ClusterError as error:
            reason = NotSent(error.message, code=JOIN_TOKEN_UNMADE)
        except RuleViolation as overtaken:
            reason = NotSent(overtaken.message, code="overtaken")
        raise reason  # outside of `except`, so that no traceback leads to a token

    def _birth(self, attempt: CreateAttempted) -> Birth:
        books = self.bench.books
        kind: InstanceType | None = books.cloud.catalogue.get(attempt.instance_type)
        if kind is None:
            raise NotSent("the catalogue does not have the instance type yet", code="no_catalogue")
        return Birth(
            name=attempt.instance,
            spec=books.groups[attempt.node_group].spec,
            kind=kind,
            contract=attempt.contract,
            location=attempt.location,
            cluster=books.installation.cluster_name,
        )

    @contextmanager
    def _turn(self, digest: str) -> Iterator[None]:
        """Machines with the same script one after the other, so that the second finds what the first has uploaded."""
        with self._guard:
            turn = self._turns.setdefault(digest, threading.Lock())
        with turn:
            yield
        with self._guard:
            if not turn.locked():
                self._turns.pop(digest, None)

    def _uploaded(self, script: Script, token_digest: str | None, attempt: CreateAttempted, cause: Cause) -> str:
        prepare = PrepareScript(
            instance=attempt.instance, attempt=attempt.attempt, digest=script.digest, token_digest=token_digest
        )
        name = script_name(self.bench.books.installation.installation_id, attempt.instance, attempt.attempt)
        self.keeper.under_way.add(name)  # load-bearing: before the intent, which a sweep would take for a crash's
        try:
            for item in self.bench.record(prepare, cause):
                if isinstance(item.event, ScriptAssigned):
                    return item.event.script_id
                if isinstance(item.event, ScriptUploadAttempted):
                    return self._upload(item.event.script, script, prepare, attempt, cause)
        finally:
            self.keeper.under_way.discard(name)
        raise NotSent("the wish was changed meanwhile", code="overtaken")

    def _upload(
        self, name: str, script: Script, prepared: PrepareScript, attempt: CreateAttempted, cause: Cause
    ) -> str:
        """Store it and record the answer."""
        try:
            script_id = self._create(name, script, attempt, cause)
            uploaded = RecordScriptUploaded(
                instance=attempt.instance, script=name, script_id=script_id, token_digest=prepared.token_digest
            )
            self.bench.record(uploaded, cause)
        except OutcomeUnknown as error:
            # No machine was ordered, so it is safe to try again; what may have been stored is found by its name.
            raise NotSent("nobody knows whether the startup script was stored", code=error.code) from None
        except CloudError:
            never = RecordScriptDeleted(script=name, script_id=None, reason=ScriptEnd.NEVER_UPLOADED)
            self.bench.record(never, cause)
            raise
        else:
            return script_id

    def _create(self, name: str, script: Script, attempt: CreateAttempted, cause: Cause) -> str:
        try:
            return self.bench.cloud.create_script(name, script.text)
        except Rejected as error:
            if error.status in _OF_THE_ACCOUNT or "scope" in error.code:
                raise
            if error.status != HTTPStatus.FORBIDDEN:
                raise self._remembered(_refusal(error, script, SCRIPT_REFUSED), attempt) from None
            if not self.keeper.make_room(cause):
                raise _refusal(error, script, SCRIPT_QUOTA) from None
        try:
            return self.bench.cloud.create_script(name, script.text)
        except Rejected as error:
            raise _refusal(error, script, SCRIPT_QUOTA) from None

    def _remembered(self, refusal: Rejected, attempt: CreateAttempted) -> Rejected:
        """The API does not take this group's script: not asked again until the configuration changes."""
        with self._guard:
            self._refused[attempt.node_group] = refusal
        return refusal


def _refusal(error: Rejected, script: Script, code: str) -> Rejected:
    return Rejected(f"startup script: {_without_echo(error.message, script.text)}", code=code, status=error.status)


def _without_echo(words: str, text: str) -> str:
    """The API's words, unless they repeat the script, which may hold secrets."""
    if any(len(word) >= _ECHO and word in words for word in text.split()):
        return "the API refused it in words that repeat it"
    return words
