"""From the words of a configuration file to values: durations, addresses, numbers, names of Kubernetes."""

import ipaddress
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from string import Formatter
from urllib.parse import urlsplit


class Refused(ValueError):
    """A value that cannot be accepted: what it must be, and how to mend it.

    `fields` are paths relative to the section, given when the problem lies between several values: the first one the
    operator wrote gets the blame. Never holds the value itself, which may be a secret.
    """

    def __init__(self, must: str, *, remedy: str = "", fields: tuple[tuple[str, ...], ...] = ()) -> None:
        super().__init__(f"{must}: {remedy}" if remedy else must)
        self.must = must
        self.remedy = remedy
        self.fields = fields


_WHOLE = re.compile(r"[-+]?[0-9]{1,15}")
_LARGEST_NUMBER = Decimal(10) ** 15
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def text(value: object) -> str:
    """Text and nothing else: YAML reads a bare `no` as false and `24.04` as a number."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, (dict, list)):
        raise Refused("must be text")
    raise Refused("must be text", remedy="put it in quotes")


def whole_number(value: object) -> int:
    """An integer, also as text, because that is how one comes out of an environment variable."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    raise Refused("must be a whole number")


def number(value: object) -> Decimal:
    """A finite decimal number of sane size, exact."""
    if isinstance(value, float):
        return number(str(value))
    if not isinstance(value, (str, int, Decimal)) or isinstance(value, bool):
        raise Refused("must be a number")
    try:
        exact = Decimal(value)
    except InvalidOperation:
        raise Refused("must be a number", remedy="write it like 0.60") from None
    if not exact.is_finite() or abs(exact) > _LARGEST_NUMBER:
        raise Refused("must be a number", remedy="write it like 0.60")
    return exact


def truth(value: object) -> bool:
    """True or false, also as text."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _TRUTH:
        return _TRUTH[value.lower()]
    raise Refused("must be true or false")


_DURATION = re.compile(
    r"(?:([0-9]{1,6})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m(?!s))?(?:([0-9]{1,6})s)?(?:([0-9]{1,6})ms)?"
)
_LONGEST_DURATION = timedelta(days=366)


def duration(value: object) -> timedelta:
    """`10s`, `15m`, `1h30m`, `1d`, `500ms`: largest unit first. A bare number is refused, for its unit is a guess."""
    if isinstance(value, timedelta):
        return value
    found = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if found is None:
        raise Refused("must be a duration with its unit", remedy="write it like 30s, 15m, 1h30m or 1d")
    days, hours, minutes, seconds, milliseconds = (int(part or 0) for part in found.groups())
    length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds)
    if length > _LONGEST_DURATION:
        raise Refused("must be at most 366d")
    return length


def positive(length: timedelta) -> timedelta:
    """Longer than nothing."""
    if length <= timedelta(0):
        raise Refused("must be longer than 0s")
    return length


def duration_text(length: timedelta) -> str:
    """The shortest way to write a duration: `1h30m`."""
    rest = length // timedelta(milliseconds=1)
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?)*"
)
_HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a TCP port to listen on; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        """`127.0.0.1:8086`, `[::1]:8086`: the form that `address` reads."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        """True if only this machine can reach it."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def overlaps(self, other: "Address") -> bool:
        """True if both cannot be listened on at once."""
        if self.port == 0 or self.port != other.port:
            return False
        return self.host == other.host or bool({self.host, other.host} & {"0.0.0.0", "::"})  # noqa: S104 - compared only

    def with_port(self, port: int) -> "Address":
        """The same host, another port."""
        return replace(self, port=port)


def port_number(value: object) -> int:
    """A TCP port."""
    port = whole_number(value)
    if not 0 <= port <= _HIGHEST_PORT:
        raise Refused(f"must be a port between 0 and {_HIGHEST_PORT}")
    return port


def address(value: object) -> Address:
    """`host:port`; an IPv6 host stands in brackets, as everywhere."""
    if isinstance(value, Address):
        return value
    must = "must be host:port"
    if isinstance(value, int) and not isinstance(value, bool):
        raise Refused(must, remedy=f"write 127.0.0.1:{value} to be reached from this machine only")
    host, colon, port = text(value).rpartition(":")
    if not colon:
        raise Refused(must, remedy="write it like 127.0.0.1:8086")
    if not host:
        raise Refused(must, remedy=f"write 0.0.0.0:{port} if you mean every network of this machine")
    if ":" in host:
        if not (host.startswith("[") and host.endswith("]")):
            raise Refused(must, remedy="an IPv6 address stands in brackets, like [::1]:8086")
        return Address(_ipv6(host[1:-1]), port_number(port))
    if not _HOST_NAME.fullmatch(host):
        raise Refused(must, remedy="write it like 127.0.0.1:8086")
    return Address(host, port_number(port))


def _ipv6(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ipaddress.AddressValueError:
        raise Refused("must be host:port", remedy="an IPv6 address looks like [::1]:8086") from None


def url(value: object) -> str:
    """An http or https address without credentials in it; a trailing slash is dropped."""
    must = "must be an http:// or https:// address"
    try:
        parts = urlsplit(text(value))
        user, host, _ = parts.username, parts.hostname, parts.port
    except ValueError as error:
        if isinstance(error, Refused):
            raise
        raise Refused(must) from None
    if user is not None or "@" in parts.netloc:
        raise Refused("must not hold a user or a password", remedy="credentials have keys of their own")
    if parts.scheme not in {"http", "https"} or not host or any(mark.isspace() for mark in text(value)):
        raise Refused(must)
    return text(value).rstrip("/")


_PLACEHOLDERS = ("hostname", "instance_id", "location", "group")


def provider_id_template(value: object) -> str:
    """A template of provider ids that names every machine apart."""
    template = text(value)
    known = ", ".join(f"{{{name}}}" for name in _PLACEHOLDERS)
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise Refused("must have its braces in pairs", remedy=f"placeholders are {known}") from None
    names = [name for _, name, _, _ in parts if name is not None]
    if any(name not in _PLACEHOLDERS or spec or conversion for _, name, spec, conversion in parts if name is not None):
        raise Refused(f"must have no placeholders but {known}")
    if "hostname" not in names and "instance_id" not in names:
        raise Refused("must hold {hostname} or {instance_id}", remedy="or all nodes of a group would share one id")
    if not re.fullmatch(r"[a-z][a-z0-9.+-]*://\S+", template):
        raise Refused("must look like scheme://something", remedy="for example verda://{hostname}")
    return template
