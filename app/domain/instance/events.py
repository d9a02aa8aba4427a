"""Facts about instances: wishes, attempts, outcomes, observations, ends."""

from datetime import datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from app.domain.envelope import InstanceEvent
from app.domain.instance.lifecycle import InstanceState
from app.domain.offering import Contract


class ErrorClass(IntEnum):
    """Cluster Autoscaler's classes of creation errors, with its numbers."""

    OUT_OF_RESOURCES = 1
    OTHER = 99


class FailureCode(StrEnum):
    """Stable codes of failed creations, as Cluster Autoscaler shows them."""

    OUT_OF_STOCK = "out-of-stock"
    INSUFFICIENT_FUNDS = "insufficient-funds"
    QUOTA_EXCEEDED = "quota-exceeded"
    IMAGE_NOT_SUPPORTED = "image-not-supported"
    INVALID_REQUEST = "invalid-request"
    FORBIDDEN = "forbidden"
    CLOUD_UNREACHABLE = "cloud-unreachable"
    RATE_LIMITED = "rate-limited"
    CREATE_TIMEOUT = "create-timeout"
    PROVISION_TIMEOUT = "provision-timeout"
    MACHINE_ERROR = "machine-error"
    NEVER_JOINED = "never-joined"
    SCRIPT_REFUSED = "startup-script-refused"
    SCRIPT_QUOTA = "startup-script-quota"
    POWER_REFUSED = "power-refused"
    JOIN_TOKEN = "join-token-unmade"  # noqa: S105 - a code


class Found(StrEnum):
    """How we know that a machine exists."""

    ANSWERED = "answered"
    LOOKED_UP = "looked-up"


class End(StrEnum):
    """Why an instance is no more."""

    DELETED = "deleted"
    EVICTED = "evicted"
    DISCONTINUED = "discontinued"
    VANISHED = "vanished"


class DeleteReason(StrEnum):
    """Why an instance is to be deleted."""

    SCALE_DOWN = "scale-down"
    FAILED_EXPIRED = "failed-expired"
    STOPPED_TOO_LONG = "stopped-too-long"
    DRAINED = "drained"


class CancelReason(StrEnum):
    """Why a wish was dropped before a machine existed."""

    TARGET_DECREASED = "target-decreased"
    DELETED = "deleted"
    GROUP_RETIRED = "group-retired"
    NEVER_CREATED = "never-created"
    BOOKS_REVERTED = "books-reverted"


class NodeDoubt(StrEnum):
    """What can be wrong with the node of an instance."""

    WRONG_PROVIDER_ID = "wrong-provider-id"
    NO_PROVIDER_ID = "no-provider-id"
    CLAIMED_TWICE = "claimed-twice"
    OLDER_THAN_MACHINE = "older-than-machine"
    MISSED = "missed"


class FetchOutcome(StrEnum):
    """What became of a request for a machine's startup script."""

    SERVED = "served"
    ALREADY_FETCHED = "already-fetched"
    NOT_WANTED = "not-wanted"


class InstanceRequested(InstanceEvent):
    """One more machine is wanted; its name is minted and never used again."""

    type: ClassVar[str] = "instance.requested"
    words: ClassVar[str] = "{instance} wanted"
    provider_id: str


class CreateAttempted(InstanceEvent):
    """The intent: the very next thing is the create call with exactly this."""

    type: ClassVar[str] = "instance.create-attempted"
    words: ClassVar[str] = "{instance}: ordering {instance_type} {contract} in {location}, attempt {attempt}"
    attempt: PositiveInt
    instance_type: str
    image: str
    location: str
    contract: Contract
    price_per_hour: Decimal | None
    currency: str


class ScriptAssigned(InstanceEvent):
    """The machine of the open attempt is ordered with this startup script.

    `token_digest` is the SHA-256 of the one-time token with which the machine fetches its real script, if it does.
    """

    type: ClassVar[str] = "instance.script-assigned"
    words: ClassVar[str] = "{instance} is ordered with startup script {script} ({script_id})"
    script: str
    script_id: str
    token_digest: str | None = None


class ScriptFetched(InstanceEvent):
    """Somebody asked the script server for the machine's script with its token; `outcome` says what came of it."""

    type: ClassVar[str] = "instance.script-fetched"
    words: ClassVar[str] = "the startup script of {instance} was asked for from {source}: {outcome}"
    source: str
    outcome: FetchOutcome


class InstanceCreated(InstanceEvent):
    """The machine exists at the cloud under this id."""

    type: ClassVar[str] = "instance.created"
    words: ClassVar[str] = "{instance} exists as {instance_id} ({found})"
    instance_id: str
    provider_id: str
    found: Found


class CreateRefused(InstanceEvent):
    """A create call proven not to have created anything. `rung_closed`: this offering is used up for this wish."""

    type: ClassVar[str] = "instance.create-refused"
    words: ClassVar[str] = "{instance}: order refused, {code}: {message}"
    attempt: PositiveInt
    error_class: ErrorClass
    code: FailureCode
    message: str
    rung_closed: bool
    retry_at: datetime | None


class CreateOutcomeUnknown(InstanceEvent):
    """A create call that may or may not have created a machine. It is looked for, never blindly repeated."""

    type: ClassVar[str] = "instance.create-outcome-unknown"
    words: ClassVar[str] = "{instance}: nobody knows whether the order went through ({reason}); looking for it"
    attempt: PositiveInt
    reason: str


class CreateRuledOut(InstanceEvent):
    """The machine of an unknown attempt has been absent from every list for the whole settle period."""

    type: ClassVar[str] = "instance.create-ruled-out"
    words: ClassVar[str] = "{instance}: attempt {attempt} created nothing, it was looked for since {looked_since}"
    attempt: PositiveInt
    looked_since: datetime


class CreateFailed(InstanceEvent):
    """The creation failed for good; Cluster Autoscaler is told and will delete it."""

    type: ClassVar[str] = "instance.create-failed"
    words: ClassVar[str] = "{instance} failed, {code}: {message}"
    error_class: ErrorClass
    code: FailureCode
    message: str


class InstanceStateObserved(InstanceEvent):
    """The cloud shows something new of the machine: `news` in words.

    `status` is the cloud's own word, `state` ours; the other fields are what the cloud shows now, None where nothing.
    """

    type: ClassVar[str] = "instance.state-observed"
    words: ClassVar[str] = "{instance} is {state}: {news}"
    status: str
    state: InstanceState
    news: str
    contract: Contract | None
    location: str | None
    price_per_hour: Decimal | None
    created_at: datetime | None
    ip: str | None
    os_volume_id: str | None
    volume_ids: tuple[str, ...] = ()


class ProviderIdLearned(InstanceEvent):
    """A real node shows another spelling of the provider id; from now on we answer with that one."""

    type: ClassVar[str] = "instance.provider-id-learned"
    words: ClassVar[str] = "{instance} is known to Kubernetes as {provider_id}"
    provider_id: str


class NodeRegistered(InstanceEvent):
    """A node of the instance is in the cluster, with its provider id; `waited_s` since it was seen running."""

    type: ClassVar[str] = "instance.node-registered"
    words: ClassVar[str] = "{instance} is node {node}, {waited_s} s after it ran"
    node: str
    uid: str
    provider_id: str
    waited_s: NonNegativeInt


class NodeJoined(InstanceEvent):
    """Its node is ready for the first time; `waited_s` since it was seen running."""

    type: ClassVar[str] = "instance.node-joined"
    words: ClassVar[str] = "{instance} is ready for pods, {waited_s} s after it ran"
    waited_s: NonNegativeInt


class NodeMeasured(InstanceEvent):
    """Its node has settled and was compared with the template; `differences` is where it has less, in figures."""

    type: ClassVar[str] = "instance.node-measured"
    words: ClassVar[str] = "{instance} has less than its template in: {differences}"
    differences: tuple[str, ...]


class NodeDoubted(InstanceEvent):
    """Something about its node needs a person; nothing is done to it. `message` says what, and the remedy."""

    type: ClassVar[str] = "instance.node-doubted"
    words: ClassVar[str] = "{instance}: {message}"
    doubt: NodeDoubt
    message: str


class ProviderIdRepairAttempted(InstanceEvent):
    """The intent: the very next thing is to give its node, which has none, this provider id; it cannot be changed."""

    type: ClassVar[str] = "instance.provider-id-repair-attempted"
    words: ClassVar[str] = "giving node {node} the provider id {provider_id}: {evidence}"
    node: str
    uid: str
    provider_id: str
    evidence: str


class NodePreparationAttempted(InstanceEvent):
    """The intent: the very next thing is to make these changes to its node, which its kubelet may not make itself."""

    type: ClassVar[str] = "instance.node-preparation-attempted"
    words: ClassVar[str] = "preparing node {node}: {changes}"
    node: str
    uid: str
    changes: tuple[str, ...]


class NodePrepared(InstanceEvent):
    """Its node has these labels, or no longer these start-up taints; none of it is ever done to that node again."""

    type: ClassVar[str] = "instance.node-prepared"
    words: ClassVar[str] = "node {node} is prepared: {changes}"
    node: str
    changes: tuple[str, ...]


class DeleteRequested(InstanceEvent):
    """The instance is to go; nothing brings it back."""

    type: ClassVar[str] = "instance.delete-requested"
    words: ClassVar[str] = "{instance} to be deleted ({reason})"
    reason: DeleteReason


class DeleteAttempted(InstanceEvent):
    """The intent: the very next thing is the delete call; another follows if it has not worked by `retry_at`."""

    type: ClassVar[str] = "instance.delete-attempted"
    words: ClassVar[str] = "{instance}: deleting {instance_id} with its OS volume, attempt {attempt}"
    attempt: PositiveInt
    instance_id: str
    volume_ids: tuple[str, ...]
    retry_at: datetime


class DeleteRefused(InstanceEvent):
    """The cloud did not take the deletion this time; it is tried again."""

    type: ClassVar[str] = "instance.delete-refused"
    words: ClassVar[str] = "{instance}: deletion not taken, {code}: {message}; next try {retry_at}"
    attempt: PositiveInt
    code: str
    message: str
    retry_at: datetime


class InstanceGone(InstanceEvent):
    """The cloud confirms that the machine we deleted is no more."""

    type: ClassVar[str] = "instance.gone"
    words: ClassVar[str] = "{instance} is gone, cost {cost} {currency}"
    end: End
    cost: Decimal | None
    currency: str


class InstanceLost(InstanceEvent):
    """The machine is no more, without our asking."""

    type: ClassVar[str] = "instance.lost"
    words: ClassVar[str] = "{instance} was lost ({end}), cost {cost} {currency}"
    end: End
    cost: Decimal | None
    currency: str


class InstanceAdopted(InstanceEvent):
    """A machine that is not in the books was taken over: one that carries our mark, or one that an operator named.

    `operator` and `reason` are of the latter, and older logs have neither.
    """

    type: ClassVar[str] = "instance.adopted"
    words: ClassVar[str] = "{instance} ({instance_id}) found at the cloud and taken into {node_group}"
    instance_id: str
    provider_id: str
    instance_type: str | None
    image: str | None
    operator: str | None = None
    reason: str | None = None


class InstanceCancelled(InstanceEvent):
    """The wish is dropped; no machine was ever created for it."""

    type: ClassVar[str] = "instance.cancelled"
    words: ClassVar[str] = "{instance} no longer wanted, nothing was bought ({reason})"
    reason: CancelReason


AnyInstanceEvent = (
    InstanceRequested
    | CreateAttempted
    | ScriptAssigned
    | ScriptFetched
    | InstanceCreated
    | CreateRefused
    | CreateOutcomeUnknown
    | CreateRuledOut
    | CreateFailed
    | InstanceStateObserved
    | ProviderIdLearned
    | NodeRegistered
    | NodeJoined
    | NodeMeasured
    | NodeDoubted
    | ProviderIdRepairAttempted
    | NodePreparationAttempted
    | NodePrepared
    | DeleteRequested
    | DeleteAttempted
    | DeleteRefused
    | InstanceGone
    | InstanceLost
    | InstanceAdopted
    | InstanceCancelled
)
