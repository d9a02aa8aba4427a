"""Between the books and the rows of the projection tables, both ways.

A row is the aggregate's fields by name; lists and settings are canonical JSON. The same function writes live rows and
rebuilt ones, so the two can be compared byte for byte.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from decimal import Decimal

from pydantic import TypeAdapter
from rpds import HashTrieMap
from sqlalchemy import RowMapping, Table

from app.domain.account import AccountRefusal
from app.domain.books import Books, Draft
from app.domain.cloud import (
    AnyCloudEvent,
    CatalogueChanged,
    CloudView,
    DuplicateInstanceDeleted,
    DuplicateInstanceDetected,
    Orphan,
    OrphanDetected,
    OrphanSettled,
    Surplus,
)
from app.domain.cluster.events import (
    AnyClusterEvent,
    AnyTokenEvent,
    JoinTokenDoubted,
    JoinTokenTrusted,
    NodeRemovalAttempted,
    TemplateLearned,
    TemplatesDiscarded,
)
from app.domain.cluster.state import ClusterView, DoubtfulToken, JoinToken, Learned, Removal
from app.domain.envelope import Event, InstanceEvent, NodeGroupEvent, Recorded
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import InstanceType
from app.domain.scripts import AnyScriptEvent, StartupScript
from app.domain.service import AnyServiceEvent, Installation
from app.store import schema
from app.store.columns import Columns, Values, canonical, iso, value_of

_INSTANCE = TypeAdapter(Instance)
_GROUP = TypeAdapter(NodeGroup)
_TYPE = TypeAdapter(InstanceType)
_SURPLUS = TypeAdapter(Surplus)
_REMOVAL = TypeAdapter(Removal)
_LEARNED = TypeAdapter(Learned)
_TOKEN = TypeAdapter(JoinToken)
_DOUBTFUL = TypeAdapter(DoubtfulToken)
_SCRIPT = TypeAdapter(StartupScript)
_ORPHAN = TypeAdapter(Orphan)
_INSTALLATION = TypeAdapter(Installation)
_ACCOUNT = TypeAdapter(AccountRefusal)
_INSTANCE_COLUMNS = Columns(field.name for field in fields(Instance))
_GROUP_COLUMNS = Columns(field.name for field in fields(NodeGroup))
_TYPE_COLUMNS = Columns(InstanceType.model_fields)
_SURPLUS_COLUMNS = Columns(field.name for field in fields(Surplus))
_LEARNED_COLUMNS = Columns(field.name for field in fields(Learned))
_REMOVAL_COLUMNS = Columns(field.name for field in fields(Removal))
_TOKEN_COLUMNS = Columns(field.name for field in fields(JoinToken))
_DOUBTFUL_COLUMNS = Columns(field.name for field in fields(DoubtfulToken))
_SCRIPT_COLUMNS = Columns(field.name for field in fields(StartupScript))
_ORPHAN_COLUMNS = Columns(field.name for field in fields(Orphan))
_INSTALLATION_COLUMNS = Columns(field.name for field in fields(Installation))
_ONLY = "only"
"""Key of the one row of a table that holds one aggregate."""


def brief(error: Exception) -> str:
    """Why a value could not be read, on one line."""
    lines = (line.strip() for line in str(error).splitlines())
    return " ".join(line for line in lines if not line.startswith("For further information"))


def instance_row(instance: Instance) -> Values:
    """The row of an instance."""
    return _INSTANCE_COLUMNS.row(instance)


def instance_of(row: RowMapping) -> Instance:
    """The instance behind a row."""
    instance: Instance = value_of(_INSTANCE, row)
    return instance


def _group_row(group: NodeGroup) -> Values:
    return _GROUP_COLUMNS.row(group)


def _type_row(kind: InstanceType, books: Books | Draft, position: int) -> Values:
    withdrawn = int(kind.name in books.cloud.withdrawn)
    return _TYPE_COLUMNS.row(kind, withdrawn=withdrawn, position=position)


def _cloud_row(view: CloudView, position: int) -> Values:
    return {
        "name": _ONLY,
        "reachable": None if view.reachable is None else int(view.reachable),
        "since": view.since and iso(view.since),
        "first_reached_at": view.first_reached_at and iso(view.first_reached_at),
        "trouble": view.trouble,
        "balance": None if view.balance is None else str(view.balance),
        "balance_currency": view.balance_currency,
        "version": view.version,
        "position": position,
        "account": view.account and canonical(_ACCOUNT.dump_python(view.account, mode="json")),
    }


class Changes:
    """Rows to write and to delete for a batch of events, given the books after it."""

    def __init__(self) -> None:
        self.upserts: dict[Table, dict[str, Values]] = {table: {} for table in schema.PROJECTED}
        self.deletes: dict[Table, list[str]] = {
            schema.surplus_instances: [],
            schema.startup_scripts: [],
            schema.orphans: [],
            schema.node_removals: [],
            schema.learned_templates: [],
            schema.join_tokens: [],
            schema.doubtful_tokens: [],
        }

    def note(self, recorded: Iterable[Recorded[Event]], books: Books | Draft) -> None:
        """Take the rows that these events touch from the books."""
        for item in recorded:
            event, position = item.event, item.position
            if isinstance(event, InstanceEvent):
                if event.instance in books.instances:
                    self._put(schema.instances, event.instance, instance_row(books.instances[event.instance]))
            elif isinstance(event, NodeGroupEvent):
                if event.node_group in books.groups:
                    self._put(schema.node_groups, event.node_group, _group_row(books.groups[event.node_group]))
            elif isinstance(event, AnyServiceEvent):
                row = _INSTALLATION_COLUMNS.row(books.installation, name=_ONLY, position=position)
                self._put(schema.installation, _ONLY, row)
            elif isinstance(event, AnyCloudEvent):
                self._note_cloud(event, position, books)
            elif isinstance(event, AnyClusterEvent):
                self._note_cluster(event, position, books)

    def _put(self, table: Table, key: str, row: Values) -> None:
        self.upserts[table][key] = row

    def _note_cloud(self, event: AnyCloudEvent, position: int, books: Books | Draft) -> None:
        self._put(schema.cloud, _ONLY, _cloud_row(books.cloud, position))
        if isinstance(event, CatalogueChanged):
            for name in (*(kind.name for kind in event.types), *event.withdrawn):
                self._put(schema.instance_types, name, _type_row(books.cloud.catalogue[name], books, position))
        elif isinstance(event, DuplicateInstanceDetected):
            found = books.cloud.surplus.get(event.instance_id)
            if found is not None:
                row = _SURPLUS_COLUMNS.row(found, position=position)
                self._put(schema.surplus_instances, event.instance_id, row)
        elif isinstance(event, DuplicateInstanceDeleted):
            self._drop(schema.surplus_instances, event.instance_id)
        elif isinstance(event, AnyScriptEvent):
            script = books.cloud.scripts.get(event.script)
            if script is None:
                self._drop(schema.startup_scripts, event.script)
            else:
                row = _SCRIPT_COLUMNS.row(script, position=position)
                self._put(schema.startup_scripts, event.script, row)
        elif isinstance(event, OrphanDetected):
            orphan = books.cloud.orphans.get(event.instance_id)
            if orphan is not None:
                self._put(schema.orphans, event.instance_id, _ORPHAN_COLUMNS.row(orphan, position=position))
        elif isinstance(event, OrphanSettled):
            self._drop(schema.orphans, event.instance_id)

    def _drop(self, table: Table, key: str) -> None:
        self.upserts[table].pop(key, None)
        self.deletes[table].append(key)

    def _note_cluster(self, event: AnyClusterEvent, position: int, books: Books | Draft) -> None:
        self._put(schema.cluster, _ONLY, {"name": _ONLY, "version": books.cluster.version, "position": position})
        if isinstance(event, TemplateLearned):
            learned = books.cluster.learned.get(event.kind)
            if learned is not None:
                self._put(schema.learned_templates, event.kind, _LEARNED_COLUMNS.row(learned, position=position))
            return
        if isinstance(event, TemplatesDiscarded):
            for kind in event.kinds:
                self._drop(schema.learned_templates, kind)
            return
        if isinstance(event, AnyTokenEvent | JoinTokenDoubted | JoinTokenTrusted):
            self._note_token(event, position, books)
            return
        removal = books.cluster.removals.get(event.uid)
        if not isinstance(event, NodeRemovalAttempted):
            self._drop(schema.node_removals, event.uid)
        elif removal is not None:
            self._put(schema.node_removals, event.uid, _REMOVAL_COLUMNS.row(removal, position=position))

    def _note_token(
        self, event: AnyTokenEvent | JoinTokenDoubted | JoinTokenTrusted, at: int, books: Books | Draft
    ) -> None:
        found: JoinToken | DoubtfulToken | None
        if isinstance(event, AnyTokenEvent):
            table, columns, found = schema.join_tokens, _TOKEN_COLUMNS, books.cluster.tokens.get(event.token_id)
        else:
            table, columns = schema.doubtful_tokens, _DOUBTFUL_COLUMNS
            found = books.cluster.doubtful_tokens.get(event.token_id)
        if found is None:
            self._drop(table, event.token_id)
        else:
            self._put(table, event.token_id, columns.row(found, position=at))


def books_of(rows: Mapping[Table, Sequence[RowMapping]], position: int) -> Books:
    """The books behind the rows of all projection tables."""
    books = Books(
        position=position, cloud=_cloud_of(rows), cluster=_cluster_of(rows), installation=_installation_of(rows)
    )
    groups = sorted((value_of(_GROUP, row) for row in rows[schema.node_groups]), key=lambda group: int(group.ordinal))
    for group in groups:
        books = books.with_group(group)
    for row in rows[schema.instances]:
        books = books.with_instance(instance_of(row))
    return books


def _cloud_of(rows: Mapping[Table, Sequence[RowMapping]]) -> CloudView:
    types = rows[schema.instance_types]
    kinds: Iterator[InstanceType] = (value_of(_TYPE, row, "withdrawn", "position") for row in types)
    texts: Iterator[StartupScript] = (value_of(_SCRIPT, row, "position") for row in rows[schema.startup_scripts])
    extras: Iterator[Surplus] = (value_of(_SURPLUS, row, "position") for row in rows[schema.surplus_instances])
    orphans: Iterator[Orphan] = (value_of(_ORPHAN, row, "position") for row in rows[schema.orphans])
    view = CloudView(
        catalogue=HashTrieMap({kind.name: kind for kind in kinds}),
        withdrawn=frozenset(row["name"] for row in types if row["withdrawn"]),
        surplus=HashTrieMap({extra.instance_id: extra for extra in extras}),
        orphans=HashTrieMap({orphan.instance_id: orphan for orphan in orphans}),
        scripts=HashTrieMap({script.name: script for script in texts}),
    )
    for row in rows[schema.cloud]:
        view = replace(
            view,
            reachable=None if row["reachable"] is None else bool(row["reachable"]),
            since=row["since"] and datetime.fromisoformat(row["since"]),
            first_reached_at=row["first_reached_at"] and datetime.fromisoformat(row["first_reached_at"]),
            trouble=row["trouble"],
            balance=None if row["balance"] is None else Decimal(row["balance"]),
            balance_currency=row["balance_currency"],
            version=row["version"],
            account=row["account"] and _ACCOUNT.validate_json(row["account"]),
        )
    return view


def _cluster_of(rows: Mapping[Table, Sequence[RowMapping]]) -> ClusterView:
    removals: Iterator[Removal] = (value_of(_REMOVAL, row, "position") for row in rows[schema.node_removals])
    learned: Iterator[Learned] = (value_of(_LEARNED, row, "position") for row in rows[schema.learned_templates])
    tokens: Iterator[JoinToken] = (value_of(_TOKEN, row, "position") for row in rows[schema.join_tokens])
    doubts: Iterator[DoubtfulToken] = (value_of(_DOUBTFUL, row, "position") for row in rows[schema.doubtful_tokens])
    view = ClusterView(
        removals=HashTrieMap({removal.uid: removal for removal in removals}),
        learned=HashTrieMap({one.kind: one for one in learned}),
        tokens=HashTrieMap({token.token_id: token for token in tokens}),
        doubtful_tokens=HashTrieMap({doubt.token_id: doubt for doubt in doubts}),
    )
    for row in rows[schema.cluster]:
        view = replace(view, version=row["version"])
    return view


def _installation_of(rows: Mapping[Table, Sequence[RowMapping]]) -> Installation:
    for row in rows[schema.installation]:
        installation: Installation = value_of(_INSTALLATION, row, "name", "position")
        return installation
    return Installation()
