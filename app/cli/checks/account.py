"""What the account at Verda says: credentials, what they may do, what the groups name, money."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from http import HTTPStatus

from app.cli.checks.finding import Finding, fine, unknown, warning, wrong
from app.cloud.verda.cloud import VerdaCloud
from app.config.model import Config
from app.config.specs import to_specs
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.words import span
from app.errors import CloudError

_NEVER_FREE = Decimal("0.0001")
_SHORT = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shop:
    """What the cloud knows, read once."""

    types: dict[str, InstanceType]
    locations: frozenset[str]
    images: frozenset[str]
    keys: frozenset[str]
    stock: dict[Contract, dict[str, frozenset[str]]]


def account(config: Config, cloud: VerdaCloud) -> Iterator[Finding]:
    """Everything, as far as one thing needs the other."""
    try:
        balance = cloud.balance()
    except CloudError as error:
        yield _refused("credentials", error)
        return
    yield fine("credentials", "the API takes them")
    try:
        machines = cloud.list_instances()
        cloud.volumes()
        shop = _read(cloud)
    except CloudError as error:
        yield _refused("scope", error)
        return
    yield fine("scope", f"machines, disks and catalogue can be read; {len(machines)} machines in the project")
    prices = [machine.price_per_hour for machine in machines if machine.price_per_hour is not None]
    yield _runway(balance.amount, balance.currency, sum(prices, Decimal(0)), config)
    for spec in to_specs(config):
        yield from _group(spec, shop, cloud)


def _read(cloud: VerdaCloud) -> _Shop:
    return _Shop(
        types={kind.name: kind for kind in cloud.instance_types()},
        locations=frozenset(cloud.locations()),
        images=frozenset(cloud.images()),
        keys=frozenset(cloud.ssh_key_ids()),
        stock={contract: dict(cloud.availability(contract)) for contract in Contract},
    )


def _refused(check: str, error: CloudError) -> Finding:
    match error.status:
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.BAD_REQUEST:
            remedy = "make a pair in Verda's console (Keys, cloud API credentials) and set VERDA_CLIENT_ID and _SECRET"
            return wrong(check, f"refused: {error.message}", remedy)
        case HTTPStatus.FORBIDDEN:
            return wrong(check, f"not allowed: {error.message}", "give the credentials the scope cloud-api-v1")
        case _:
            remedy = "see whether this machine reaches the API; it may be down, then try again"
            return unknown(check, f"no answer: {error.message}", remedy)


def _runway(amount: Decimal, currency: str, hourly: Decimal, config: Config) -> Finding:
    if amount <= 0:
        return wrong("balance", f"{amount} {currency} are left", "top up the account: no order is taken below zero")
    if hourly < _NEVER_FREE:
        return fine("balance", f"{amount} {currency}, and nothing rented")
    left = timedelta(hours=float(min(amount / hourly, Decimal(24 * 3650))))
    seen = f"{amount} {currency} last {span(left)} at {hourly} an hour"
    wanted = config.balance_runway or _SHORT
    if left < wanted:
        return warning("balance", seen, "top up the account: machines are stopped when it is empty")
    return fine("balance", seen)


def _group(spec: NodeGroupSpec, shop: _Shop, cloud: VerdaCloud) -> Iterator[Finding]:
    name = f"node_groups.{spec.name}"
    if spec.kind == "webhook":
        yield fine(name, f"{', '.join(spec.locations)}: machines of our own")
        return
    findings = [*_offer(name, spec, shop), *_access(name, spec, shop, cloud)]
    yield from findings or [
        fine(name, f"{spec.instance_type}, {spec.image}, {', '.join(spec.locations)}: as Verda has them")
    ]


def _offer(name: str, spec: NodeGroupSpec, shop: _Shop) -> Iterator[Finding]:
    for location in spec.locations:
        if location not in shop.locations:
            remedy = f"name one of {', '.join(sorted(shop.locations))}"
            yield wrong(f"{name}.location", f"there is no location {location}", remedy)
    kind = shop.types.get(spec.instance_type)
    if kind is None:
        close = [known for known in sorted(shop.types) if known[:5] == spec.instance_type[:5]] or sorted(shop.types)[:8]
        yield wrong(
            f"{name}.instance_type", f"there is no type {spec.instance_type}", f"name one of {', '.join(close)}"
        )
        return
    if spec.image not in shop.images:
        remedy = f"name one of {', '.join(kind.supported_images or sorted(shop.images)[:8])}"
        yield wrong(f"{name}.image", f"there is no image {spec.image}", remedy)
    elif kind.supported_images and spec.image not in kind.supported_images:
        remedy = f"name one of {', '.join(kind.supported_images)}"
        yield wrong(f"{name}.image", f"{spec.instance_type} cannot start {spec.image}", remedy)
    for contract in spec.contracts:
        if kind.price(contract) is None:
            yield warning(f"{name}.price", f"no {contract} price is known for {kind.name}", "set hourly_price")
    yield from _stock(name, spec, shop)


def _stock(name: str, spec: NodeGroupSpec, shop: _Shop) -> Iterator[Finding]:
    """Stock comes and goes, so being out of it is no mistake; never being in it would be."""
    ladder = ((rung.contract, rung.location) for rung in spec.ladder())
    if any(spec.instance_type in shop.stock[contract].get(location, ()) for contract, location in ladder):
        return
    stocks = (stock for contract in spec.contracts for stock in shop.stock[contract].items())
    places = sorted({location for location, types in stocks if spec.instance_type in types})
    remedy = f"there is some at {', '.join(places)}" if places else "there is none anywhere now: add another group"
    yield warning(f"{name}.stock", f"{spec.instance_type} is out of stock at {', '.join(spec.locations)} now", remedy)


def _access(name: str, spec: NodeGroupSpec, shop: _Shop, cloud: VerdaCloud) -> Iterator[Finding]:
    for key in spec.ssh_key_ids:
        if key not in shop.keys:
            yield wrong(f"{name}.ssh_key_ids", f"the project has no SSH key {key}", "add it there, or remove it here")
    if spec.startup_script is not None:
        return  # made from the configuration, which has tried it
    if spec.startup_script_id is None:
        remedy = "without a script nothing makes the machine a node, unless the image does"
        yield warning(f"{name}.startup_script", "there is none", remedy)
        return
    try:
        if not cloud.has_script(spec.startup_script_id):
            seen = f"the project has no script {spec.startup_script_id}"
            yield wrong(f"{name}.startup_script", seen, "create it in Verda's console, and put its id here")
    except CloudError as error:
        yield _refused(f"{name}.startup_script", error)
