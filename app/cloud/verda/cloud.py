"""Verda as a `Cloud`."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import urlsplit

import requests
import structlog
from pydantic import SecretStr

from app.clock import Clock, SystemClock
from app.cloud.breaker import Breaker, BreakerState
from app.cloud.port import Balance, Deletion, DeletionAnswer, StoredScript
from app.cloud.ratelimit import RateLimiter
from app.cloud.verda import decode, deletion, fields
from app.cloud.verda.auth import Auth
from app.cloud.verda.calls import CallReport, Observer, Outcome, ignore
from app.cloud.verda.order import order_body
from app.cloud.verda.outcome import says_not_found
from app.cloud.verda.sdk import Client, Http
from app.cloud.verda.transport import Limits, Transport
from app.domain.machine import Machine, Order, Volume
from app.domain.offering import Contract, InstanceType, Offering
from app.errors import CloudError, OutcomeUnknown, Rejected

DEFAULT_BASE_URL = "https://api.verda.com/v1"
_PAGE = 100
"""Entries of a page at most (Verda OpenAPI); without asking it is ten."""
_MOST_PAGES = 50

_Value = TypeVar("_Value")
_log = structlog.get_logger(__name__)


class VerdaCloud:
    """Rents machines at Verda through the official SDK, with a closed set of outcomes.

    Construction does no network. `base_url` includes `/v1`. `backend` tells the real API from a simulator behind the
    same protocol. `observer` hears of every request; `wait` blocks for a number of seconds while the rate limit holds.
    """

    def __init__(
        self,
        *,
        base_url: str = DEFAULT_BASE_URL,
        client_id: str,
        client_secret: SecretStr | str,
        limits: Limits | None = None,
        clock: Clock | None = None,
        observer: Observer = ignore,
        backend: str = "verda",
        wait: Callable[[float], object] | None = None,
    ) -> None:
        address = urlsplit(base_url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise ValueError("the API's base URL must look like https://api.verda.com/v1")
        secret = client_secret if isinstance(client_secret, SecretStr) else SecretStr(client_secret)
        if not client_id or not secret:
            raise ValueError("the API needs a client id and a client secret")
        if not (client_id.isascii() and client_id.isprintable()):
            raise ValueError("the client id must be printable ASCII: the SDK puts it into a header")
        limits = limits or Limits()
        base_url = base_url.rstrip("/")
        self._backend = backend
        self._observer = observer
        self._clock = clock or SystemClock()
        self._breaker = Breaker(clock=self._clock, threshold=limits.breaker_threshold)
        self._transport = Transport(limits=limits, clock=self._clock, breaker=self._breaker)
        self.limiter = RateLimiter(clock=self._clock, share=limits.rate_share, wait=wait)
        self._http = Http(
            auth := Auth(client_id, secret, base_url, transport=self._transport, clock=self._clock),
            base_url,
            transport=self._transport,
            limiter=self.limiter,
            clock=self._clock,
            timeout=limits.timeout,
        )
        self._client = Client(auth, self._http, base_url)

    @property
    def backend(self) -> str:
        """`verda` or `simulator`."""
        return self._backend

    @property
    def circuit_open(self) -> bool:
        """Calls fail at once, because the last ones found no way to the API."""
        return self._breaker.state is not BreakerState.CLOSED

    @property
    def breaker(self) -> Breaker:
        """Whether the API can be reached at all, for readiness and metrics."""
        return self._breaker

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._transport.close()

    def list_instances(self) -> Sequence[Machine]:
        """Every machine of the project that is not discontinued; raises unless each entry could be read."""
        return self._read("list_instances", "/instances", lambda body: decode.complete(body, decode.machine))

    def get_instance(self, instance_id: str) -> Machine | None:
        """One machine, discontinued ones too; None only if the API itself says there is none."""

        def read(body: bytes) -> Machine:
            found = decode.machine(decode.entry(body))
            if found.instance_id.lower() != instance_id.lower():
                raise decode.Unreadable("the answer is about another machine")
            return found

        try:
            return self._read("get_instance", "/instances/{id}", read, path_params={"id": instance_id})
        except Rejected as error:
            if says_not_found(error):
                return None
            raise

    def create_instance(self, order: Order) -> str:
        """Order one machine and return its id; after OutcomeUnknown look for the hostname, never call again."""
        return self._call(
            "create_instance",
            lambda: self._http.post("/instances", json=order_body(order)),
            lambda response: decode.new_id(response.content),
        )

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Ask for deletion; one answer per machine, in the order asked.

        A machine whose own request failed while others were answered is REFUSED with the failure's code: ask again.
        """
        deadline = self._http.deadline()

        def send(batch: deletion.Batch) -> Mapping[str, DeletionAnswer]:
            return self._call(
                "delete_instances",
                lambda: self._http.put("/instances", json=batch.body(), deadline=deadline),
                lambda response: deletion.read_answers(batch, response),
            )

        return deletion.delete(deletions, send)

    def instance_types(self) -> Sequence[InstanceType]:
        """The catalogue, in US dollars, without the entries that cannot be read."""
        return self._read_each("instance_types", "/instance-types", decode.instance_type, {"currency": "usd"})

    def availability(self, contract: Contract) -> Mapping[str, frozenset[str]]:
        """Location → instance types said to be in stock; spot and on-demand have stocks of their own."""
        return dict(self._read_each("availability", "/instance-availability", decode.stock, _market(contract)))

    def is_available(self, offering: Offering) -> bool:
        """Whether one offering is said to be in stock."""

        def read(body: bytes) -> bool:
            answer = fields.truth(decode.value(body))
            if answer is None:
                raise decode.Unreadable("the answer is neither true nor false")
            return answer

        return self._read(
            "is_available",
            "/instance-availability/{type}",
            read,
            params={**_market(offering.contract), "location_code": offering.location},
            path_params={"type": offering.instance_type},
        )

    def locations(self) -> Sequence[str]:
        """Codes of all locations."""
        return self._read_each("locations", "/locations", decode.location_code)

    def images(self) -> Sequence[str]:
        """Names of all images."""
        return self._read_each("images", "/images", decode.image_name)

    def ssh_key_ids(self) -> Sequence[str]:
        """Ids of all SSH keys of the project."""
        return self._read_each("ssh_keys", "/ssh-keys", decode.identity)

    def has_script(self, script_id: str) -> bool:
        """Whether the project has this startup script. Asked by id, because lists of scripts come in pages."""
        try:
            self._read("get_script", "/scripts/{id}", decode.value, path_params={"id": script_id})
        except Rejected as error:
            if says_not_found(error):
                return False
            raise
        return True

    def volumes(self) -> Sequence[Volume]:
        """Every volume of the project outside the trash."""
        return self._read_each("volumes", "/volumes", decode.volume)

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """Delete a detached volume; one that is already gone is fine."""

        def send() -> tuple[None, None]:
            self._client.volumes.delete_by_id(volume_id, is_permanent=permanent)
            return None, None

        try:
            self._watched("delete_volume", send)
        except Rejected as error:
            if not says_not_found(error):
                raise

    def balance(self) -> Balance:
        """What is left on the account."""
        return self._read("balance", "/balance", lambda body: decode.balance(decode.entry(body)))

    def scripts(self) -> Sequence[StoredScript]:
        """Every startup script of the project, page by page."""
        found: dict[str, StoredScript] = {}
        for page in range(1, _MOST_PAGES + 1):
            query = {"page": str(page), "pageSize": str(_PAGE)}
            items = self._read(
                "scripts", "/scripts", lambda body: decode.complete(body, decode.stored_script), params=query
            )
            found.update({item.script_id: item for item in items})
            if len(items) < _PAGE:
                break
        return tuple(found.values())

    def create_script(self, name: str, text: str) -> str:
        """Store a startup script and return its id."""
        return self._call(
            "create_script",
            lambda: self._http.post("/scripts", json={"name": name, "script": text}),
            lambda response: decode.new_id(response.content),
        )

    def delete_script(self, script_id: str) -> None:
        """Delete a startup script; one that is already gone is fine."""
        try:
            self._call(
                "delete_script",
                lambda: self._http.delete("/scripts/{id}", path_params={"id": script_id}),
                lambda _: None,
            )
        except Rejected as error:
            if not says_not_found(error):
                raise

    def _read(
        self,
        operation: str,
        path: str,
        read: Callable[[bytes], _Value],
        *,
        params: Mapping[str, str] | None = None,
        path_params: Mapping[str, str] | None = None,
    ) -> _Value:
        """One GET; only 200 is a complete answer, as 206 would be a part of one and 202 none yet."""

        def read_complete(response: requests.Response) -> _Value:
            if response.status_code != HTTPStatus.OK:
                raise decode.Unreadable(f"HTTP {response.status_code} is not a complete answer")
            return read(response.content)

        return self._call(
            operation, lambda: self._http.get(path, params=params, path_params=path_params), read_complete
        )

    def _read_each(
        self,
        operation: str,
        path: str,
        read: Callable[[decode.Entry], _Value],
        params: Mapping[str, str] | None = None,
    ) -> list[_Value]:
        """One GET of an array, without the entries that cannot be read."""
        values, problems = self._read(operation, path, lambda body: decode.readable(body, read), params=params)
        if problems:
            _log.warning("entries left out", operation=operation, entries=len(problems), first=problems[0])
        return values

    def _call(
        self, operation: str, send: Callable[[], requests.Response], read: Callable[[requests.Response], _Value]
    ) -> _Value:
        """Send and read. An answer that cannot be read leaves the outcome unknown."""

        def work() -> tuple[_Value, int]:
            response = send()
            status = response.status_code
            try:
                return read(response), status
            except decode.Unreadable as problem:
                words = f"unreadable answer: {problem}"
                raise OutcomeUnknown(words, code="unreadable_answer", status=status) from problem

        return self._watched(operation, work)

    def _watched(self, operation: str, work: Callable[[], tuple[_Value, int | None]]) -> _Value:
        """Do it and tell the observer what became of it; `work` returns its result and the HTTP status if it knows."""
        started = self._clock.monotonic()
        try:
            value, status = work()
        except CloudError as error:
            self._report(operation, started, error.status, error)
            raise
        self._report(operation, started, status, None)
        return value

    def _report(self, operation: str, started: float, status: int | None, error: CloudError | None) -> None:
        report = CallReport(
            operation=operation,
            outcome=Outcome.of(error),
            status=status,
            code=error.code if error else "",
            duration_s=self._clock.monotonic() - started,
        )
        _log.debug(
            "api call",
            operation=operation,
            outcome=str(report.outcome),
            status=status,
            code=report.code,
            duration_s=round(report.duration_s, 4),
        )
        try:
            self._observer(report)
        except Exception:  # noqa: BLE001 - a mistake in somebody's metrics must not lose the id of a machine that bills
            _log.exception("observer failed", operation=operation)


def _market(contract: Contract) -> dict[str, str]:
    """The query for a contract's stock, spelled as the SDK does."""
    return {"isSpot": "true" if contract is Contract.SPOT else "false"}
