"""The JSON of the Kubernetes API, as far as we read it."""

import base64
from datetime import UTC, datetime
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from app.domain.cluster.node import Node, NodeTaint
from app.errors import ClusterUnavailable

M = TypeVar("M", bound=BaseModel)


class _Metadata(BaseModel):
    name: str
    uid: str
    resourceVersion: str  # noqa: N815 - the API's own spelling, here and below
    creationTimestamp: datetime  # noqa: N815
    deletionTimestamp: datetime | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    finalizers: list[str] | None = None


class _Taint(BaseModel):
    key: str
    value: str | None = None
    effect: str


class _Spec(BaseModel):
    providerID: str | None = None  # noqa: N815
    taints: list[_Taint] | None = None


class _Condition(BaseModel):
    type: str
    status: str
    lastTransitionTime: datetime | None = None  # noqa: N815


class _Address(BaseModel):
    address: str


class _Info(BaseModel):
    bootID: str = ""  # noqa: N815


class _Status(BaseModel):
    conditions: list[_Condition] | None = None
    capacity: dict[str, str] | None = None
    allocatable: dict[str, str] | None = None
    addresses: list[_Address] | None = None
    nodeInfo: _Info | None = None  # noqa: N815


class _Node(BaseModel):
    metadata: _Metadata
    spec: _Spec = Field(default_factory=_Spec)
    status: _Status = Field(default_factory=_Status)


class _ListMetadata(BaseModel):
    resourceVersion: str  # noqa: N815
    continue_: str | None = Field(default=None, alias="continue")


class NodeList(BaseModel):
    """One page of a list; `more` leads to the next one."""

    metadata: _ListMetadata
    items: list[_Node] | None = None

    @property
    def version(self) -> str:
        """The version of the whole list, the same on every page."""
        return self.metadata.resourceVersion

    @property
    def more(self) -> str | None:
        """What to ask for the next page with, None on the last."""
        return self.metadata.continue_ or None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of this page."""
        return [_node(item) for item in self.items or ()]


class Status(BaseModel):
    """What the API says when it refuses."""

    kind: Literal["Status"]
    message: str = ""
    code: int = 0


class _VersionOnly(BaseModel):
    resourceVersion: str  # noqa: N815


class _Bookmark(BaseModel):
    metadata: _VersionOnly


def read_page(value: object) -> NodeList:
    """A page of a list. One node that cannot be read spoils it: a partial list must never pass for a whole one.

    Raises:
        ClusterUnavailable: it cannot be read.
    """
    return _read(NodeList, value)


def read_node(value: object) -> Node:
    """One node.

    Raises:
        ClusterUnavailable: it cannot be read.
    """
    return _node(_read(_Node, value))


class _Secret(BaseModel):
    data: dict[str, str] | None = None


def read_expiration(value: object) -> datetime | None:
    """When a bootstrap token ends, None if never.

    Raises:
        ClusterUnavailable: it cannot be read. Never repeats any of it.
    """
    encoded = (_read(_Secret, value).data or {}).get("expiration")
    if not encoded:
        return None
    try:
        found = datetime.fromisoformat(base64.b64decode(encoded, validate=True).decode().strip())
    except ValueError:
        raise ClusterUnavailable("the expiration of a join token cannot be read") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def read_bookmark(value: object) -> str:
    """The version up to which a watch has told everything.

    Raises:
        ClusterUnavailable: it cannot be read.
    """
    return _read(_Bookmark, value).metadata.resourceVersion


def read_status(value: object) -> Status | None:
    """The API's own words about a refusal, None if these are somebody else's."""
    try:
        return Status.model_validate(value)
    except ValidationError:
        return None


def _read(model: type[M], value: object) -> M:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ClusterUnavailable(f"the API server's answer cannot be read: {place}: {first['msg']}") from error


def _node(item: _Node) -> Node:
    ready = next((one for one in item.status.conditions or () if one.type == "Ready"), None)
    return Node(
        name=item.metadata.name,
        uid=item.metadata.uid,
        resource_version=item.metadata.resourceVersion,
        created_at=item.metadata.creationTimestamp,
        provider_id=item.spec.providerID or "",
        ready=ready is not None and ready.status == "True",
        changed_at=ready.lastTransitionTime if ready is not None else None,
        labels=item.metadata.labels or {},
        taints=tuple(
            NodeTaint(key=taint.key, value=taint.value or "", effect=taint.effect) for taint in item.spec.taints or ()
        ),
        capacity=item.status.capacity or {},
        allocatable=item.status.allocatable or {},
        addresses=tuple(address.address for address in item.status.addresses or ()),
        boot_id=item.status.nodeInfo.bootID if item.status.nodeInfo else "",
        deleting_since=item.metadata.deletionTimestamp,
        finalizers=tuple(item.metadata.finalizers or ()),
    )
