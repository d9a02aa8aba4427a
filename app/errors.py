"""The whole exception tree. Packages translate foreign exceptions into these at their border.

ProviderError
├── InvalidRequest          the caller's words make no sense: nothing was looked up
├── NotFound                no node group of that name
├── RuleViolation           understood and refused: max size, wrong group, retired
├── Conflict                lost a race; asking again may succeed
├── DeadlinePassed          the caller has stopped waiting; nothing was done
├── NotServing              no trustworthy picture of the cloud yet
├── NotAllowed              the caller's certificate is not on the list
├── Unreachable             a process that was to answer does not
├── ConfigurationError      every problem of a configuration, all at once
├── StoreError
│   ├── StoreUnavailable    disk full, I/O error: nothing was written
│   │   └── StoreBusy       somebody else's transaction is in the way
│   ├── StoreHeld           another process holds the database
│   └── StoreCorrupt        the file is not what we wrote
├── ClusterError            the Kubernetes API did not do what was asked; scaling never depends on it
│   ├── ClusterUnavailable  failing, or not making sense
│   │   └── ClusterDown     no answer, or the wish that we wait: the next call would be in vain too
│   ├── ClusterRefused      proven: refused by the API's own answer, nothing was done
│   │   └── ClusterForbidden  not granted to us
│   └── ClusterConflict     the object has changed since it was read: nothing was done
└── CloudError              closed set of outcomes of a call to the cloud
    ├── NotSent             proven: the request never left
    ├── Rejected            proven: refused by the API's own answer, not executed
    ├── Throttled           proven: over a rate limit, not executed
    ├── NoCapacity          proven: nothing in stock, nothing created
    └── OutcomeUnknown      it may have been executed
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar


class ProviderError(Exception):
    """Root of everything we raise on purpose; `context` becomes log fields and never holds secrets."""

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context: Mapping[str, object] = context


class InvalidRequest(ProviderError):
    """The request makes no sense whatever the state is."""


class NotFound(ProviderError):
    """There is no node group of that name."""


class RuleViolation(ProviderError):
    """The request is understood and refused; nothing changed."""


class Conflict(ProviderError):
    """Lost a race against another change; asking again may succeed."""


class DeadlinePassed(ProviderError):
    """The caller stopped waiting before anything was durable, so nothing was done."""


class NotServing(ProviderError):
    """There is no trustworthy picture of the cloud yet."""


class NotAllowed(ProviderError):
    """The caller is known and not on the list of allowed clients."""


class Unreachable(ProviderError):
    """A process that was to answer us refused or did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in a configuration: where it stands, what is wrong, how to mend it."""

    source: str
    line: int | None
    path: str
    message: str

    def __str__(self) -> str:
        """`config.yaml:12: node_groups.gpu.max_size: must be at least min_size (3), is 2`."""
        place = self.source if self.line is None else f"{self.source}:{self.line}"
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


class ConfigurationError(ProviderError):
    """Everything that is wrong with a configuration, in file order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class StoreError(ProviderError):
    """The database cannot do what was asked."""


class StoreUnavailable(StoreError):
    """Disk full, I/O error, locked out: nothing was written. It may recover by itself."""


class StoreBusy(StoreUnavailable):
    """Somebody else's transaction holds the write lock; it was waited for as long as callers can wait."""


class StoreHeld(StoreError):
    """Another process holds the database."""


class StoreCorrupt(StoreError):
    """The file is damaged or not what we wrote."""


class ClusterError(ProviderError):
    """The Kubernetes API did not do what was asked."""

    code: ClassVar[str]


class ClusterUnavailable(ClusterError):
    """Failing, or not making sense; `retry_after` is its own wish. The call may have been executed.

    Says nothing about the next call: the API server also answers so while a webhook is down that guards some objects.
    """

    code = "cluster-unavailable"

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ClusterDown(ClusterUnavailable):
    """Out of reach, too slow, or overloaded and wishing that we wait: the next call would be in vain too."""


class ClusterRefused(ClusterError):
    """Proven: the cluster does not let this be done to this object, by a webhook, a policy or a rule of its own."""

    code = "cluster-refused"


class ClusterForbidden(ClusterRefused):
    """Proven: this is not granted to us, or nobody knows us."""

    code = "cluster-forbidden"


class ClusterConflict(ClusterError):
    """Proven: the object is no longer the one that was read, so nothing was done."""

    code = "cluster-conflict"


class CloudError(ProviderError):
    """A call to the cloud did not succeed. Exactly the subclasses below exist.

    `code` is the API's own error code or ours in the same style, `status` the HTTP status if there was one.
    """

    def __init__(
        self, message: str, *, code: str, status: int | None = None, retry_after: timedelta | None = None
    ) -> None:
        super().__init__(message, code=code, status=status)
        self.code = code
        self.status = status
        self.retry_after = retry_after


class NotSent(CloudError):
    """Proven: the request never reached the API (refused connection, no token, our own circuit breaker)."""


class Rejected(CloudError):
    """Proven: the API refused and did nothing. `code` and `message` are Verda's own words."""


class Throttled(CloudError):
    """Proven: over a rate limit, not executed; `retry_after` says how long to wait."""


class NoCapacity(CloudError):
    """Proven: nothing of this kind in stock, nothing was created (HTTP 503 `service_unavailable` in JSON)."""


class OutcomeUnknown(CloudError):
    """It may or may not have been executed: timeout, reset, gateway error, unreadable answer."""
