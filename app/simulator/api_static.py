"""Endpoints of everything that is no machine and no disk: catalogue, balance, scripts, keys, journal."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from app.simulator.api_instances import id_answer
from app.simulator.catalogue import image_documents, location_documents, type_document, volume_type_documents
from app.simulator.catalogue_data import LOCATIONS
from app.simulator.errors import invalid, not_found
from app.simulator.library import Library
from app.simulator.orders import read_ids
from app.simulator.records import NamedText
from app.simulator.state import JournalRow
from app.simulator.steer import Steer
from app.simulator.wire import Request, Response
from app.simulator.world import World

Row = TypeVar("Row")
Handler = Callable[[Request, Mapping[str, str], Steer], Response]
_PAGE = 10
_MAX_PAGE = 100


class StaticEndpoints:
    """The catalogue and the account, and the tables of scripts, keys and journal."""

    def __init__(self, world: World) -> None:
        self._world = world

    def rows(self) -> Sequence[tuple[str, str, Handler, bool]]:
        """Method, path, handler and whether no token is needed, for the route table."""
        rows: list[tuple[str, str, Handler, bool]] = [
            ("GET", "/instance-types", self._types, True),
            ("GET", "/instance-types/price-history", self._price_history, True),
            ("GET", "/volume-types", self._volume_types, True),
            ("GET", "/instance-availability", self._availabilities, False),
            ("GET", "/instance-availability/{type}", self._availability, False),
            ("GET", "/images", self._images, False),
            ("GET", "/locations", lambda _r, _v, _s: Response(status=200, payload=location_documents()), False),
            ("GET", "/balance", self._balance, False),
            ("GET", "/journal", self._journal, False),
            ("GET", "/journal/compute/{compute_id}", self._journal, False),
            ("GET", "/journal/volume/{volume_id}", self._journal, False),
        ]
        for path, shelf, field, render in (
            ("/scripts", self._scripts, "scripts", self._script),
            ("/ssh-keys", self._keys, "keys", self._key),
            ("/sshkeys", self._keys, "keys", self._key),
        ):
            texts = TextEndpoints(shelf, field, render, self._world)
            rows += [
                ("GET", path, texts.listing, False),
                ("POST", path, texts.create, False),
                ("DELETE", path, texts.delete, False),
                ("GET", f"{path}/{{id}}", texts.get, False),
                ("DELETE", f"{path}/{{id}}", texts.delete_one, False),
            ]
        return rows

    def _scripts(self) -> Library:
        return self._world.scripts

    def _keys(self) -> Library:
        return self._world.keys

    def _script(self, item: NamedText) -> object:
        return self._world.views.script(item)

    def _key(self, item: NamedText) -> object:
        return self._world.views.key(item)

    def _entry(self, row: JournalRow) -> object:
        return self._world.views.journal(row)

    def _types(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        currency = request.first("currency") or "usd"
        if currency not in {"usd", "eur"}:
            raise invalid("currency must be one of usd, eur")
        return Response(status=200, payload=[type_document(item, currency) for item in self._world.catalogue.types()])

    @staticmethod
    def _price_history(_request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """Deprecated and no longer filled (Verda OpenAPI: "Not supported anymore")."""
        return Response(status=200, payload={})

    def _volume_types(self, _request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        price = self._world.config.billing.storage_per_gb_month
        return Response(status=200, payload=volume_type_documents(price))

    def _availabilities(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        spot, wanted = _spot_and_place(request)
        return Response(
            status=200,
            payload=[
                {"location_code": code, "availabilities": list(self._world.capacity.available(code, spot=spot))}
                for code, _, _ in LOCATIONS
                if wanted in {None, code}
            ],
        )

    def _availability(self, request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        spot, wanted = _spot_and_place(request)
        return Response(
            status=200,
            payload=any(
                values["type"] in self._world.capacity.available(code, spot=spot)
                for code, _, _ in LOCATIONS
                if wanted in {None, code}
            ),
        )

    def _images(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        wanted = request.first("instance_type")
        if not wanted:
            return Response(status=200, payload=image_documents())
        item = self._world.catalogue.find(wanted)
        if item is None:
            raise not_found("Instance type not found")
        return Response(status=200, payload=image_documents(item.supported_os))

    def _balance(self, _request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        self._world.account.settle_storage()
        amount = self._world.state.account.balance_micro / 1_000_000
        return Response(status=200, payload={"amount": amount, "currency": self._world.config.billing.currency})

    def _journal(self, request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        compute = values.get("compute_id") or request.first("compute_id")
        volume = values.get("volume_id") or request.first("volume_id")
        action, kind = request.first("action_code"), request.first("object_type")
        rows: list[JournalRow] = [
            row
            for row in reversed(self._world.state.journal)
            if row.object_id == (compute or volume or row.object_id)
            and row.action == (action or row.action)
            and row.object_type == (kind or row.object_type)
        ]
        return page(request, rows, self._entry)


class TextEndpoints:
    """/scripts, /ssh-keys and /sshkeys: one shelf each. A single GET answers an array of one, as the SDK expects."""

    def __init__(
        self, shelf: Callable[[], Library], field: str, render: Callable[[NamedText], object], world: World
    ) -> None:
        self._shelf = shelf
        self._field = field
        self._render = render
        self._world = world

    def listing(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """Scripts in pages of ten, keys all at once."""
        items = list(self._shelf().newest_first())
        if self._field == "keys":
            return Response(status=200, payload=[self._render(item) for item in items])
        part = request.first("name")
        found = [item for item in items if not part or part in item.name]
        if request.first("orderDirection") == "asc":
            found.reverse()
        return page(request, found, self._render)

    def get(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """An array of one."""
        return Response(status=200, payload=[self._render(self._shelf().get(values["id"]))])

    def create(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """201 with the new id."""
        body = request.json
        if not isinstance(body, dict):
            raise invalid("Request body must be a JSON object")
        item = self._shelf().add(body.get("name"), body.get("script" if self._field == "scripts" else "key"))
        return id_answer(201, item.id, quoted=self._world.config.behaviour.quoted_ids)

    def delete(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """Several at once, named in the body of the DELETE."""
        ids = read_ids(request.fields, self._field)
        if not ids:
            raise invalid(f"{self._field} must be an array of ids")
        self._shelf().delete(ids)
        return Response(status=200, payload={}, committed=True)

    def delete_one(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """One, by path."""
        self._shelf().delete([values["id"]])
        return Response(status=200, payload={}, committed=True)


def page(request: Request, rows: Sequence[Row], render: Callable[[Row], object]) -> Response:
    """One page of a paged list: metadata in headers, a bare array in the body. Raises: 400."""
    number, size = _count(request, "page", 1), _count(request, "pageSize", _PAGE)
    if size > _MAX_PAGE:
        raise invalid("pageSize must not be greater than 100")
    shown = rows[(number - 1) * size : number * size]
    headers = {"X-Page": str(number), "X-Page-Size": str(size), "X-Total-Count": str(len(rows))}
    return Response(status=200, payload=[render(row) for row in shown], headers=headers)


def _count(request: Request, name: str, default: int) -> int:
    value = request.first(name)
    if value is None:
        return default
    if not value.isdigit() or int(value) < 1:
        raise invalid(f"{name} must be a positive number")
    return int(value)


def _spot_and_place(request: Request) -> tuple[bool, str | None]:
    spot = request.first("is_spot", "isSpot") == "true"
    return spot, request.first("location_code", "locationCode") or None
