"""The startup-script server: gives every machine its script once, so that the script rests nowhere else."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from app.clock import Ids
from app.domain.books import Books
from app.domain.envelope import Cause
from app.domain.instance.state import Instance
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.script_decide import RecordFetch, may_fetch
from app.errors import ClusterError, RuleViolation, StoreError
from app.ledger.ledger import Ledger
from app.log import INSTANCE, get_logger
from app.startup.sources import ScriptSource
from app.startup.template import ScriptError
from app.startup.tokens import TokenMint
from app.startup.variables import Birth, sample_birth

_BEARER = "bearer "
_TYPE = "text/x-shellscript; charset=utf-8"
_log = get_logger(room="scripts")

Sources = Callable[[], Mapping[str, ScriptSource]]
"""What the scripts of the groups are made of now."""


def token_digest(token: str) -> str:
    """What the books know of a one-time token."""
    return hashlib.sha256(token.encode()).hexdigest()


def one_time_pages(ledger: Ledger, ids: Ids, sources: Sources, mint: TokenMint | None = None) -> Starlette:
    """`GET /script` for whoever shows the token of a machine that is wanted: once, written down before it leaves.

    With `mint`, join tokens are made in this moment, when the machine has booted and is about to use them.
    """

    def made(instance: Instance) -> str | None:
        """None if it will be refused: no token is made for that."""
        if not may_fetch(instance):
            return None
        source, more = sources()[instance.node_group], {}
        if mint is not None:
            more = {name: mint.mint(instance.name, ttl) for name, ttl in source.minted.items()}
        return source.script(_birth(instance, ledger.books), more).text

    def script(request: Request) -> Response:
        token = _token(request)
        if token is None:
            return _refusal(401, "show the token of the machine")
        source = request.client.host if request.client is not None else "unknown"
        instance = _holder(ledger.books, token)
        if instance is None:
            _log.warning("startup script asked for with a token that is none", source=source)
            return _refusal(403, "this token is no machine's")
        try:
            text = made(instance)
            cause = Cause(actor="startup-script", correlation_id=ids.token())
            ledger.execute(RecordFetch(instance=instance.name, source=source), cause)
        except (KeyError, ScriptError) as error:
            _log.error("startup script cannot be made", **{INSTANCE: instance.name}, error=str(error))
            return _refusal(503, "the script cannot be made now")
        except ClusterError as error:
            _log.error("join token cannot be made", **{INSTANCE: instance.name}, error=error.message)
            return _refusal(503, "the script cannot be made now")
        except RuleViolation as refusal:
            return _refusal(410, refusal.message)
        except StoreError:
            return _refusal(503, "the fetch cannot be written down now")
        if text is None:
            return _refusal(503, "the script cannot be made now")
        return Response(text, media_type=_TYPE, headers={"Cache-Control": "no-store"})

    return Starlette(routes=[Route("/script", script)])


def _token(request: Request) -> str | None:
    header = request.headers.get("authorization", "")
    return header[len(_BEARER) :].strip() or None if header.lower().startswith(_BEARER) else None


def _refusal(status: int, words: str) -> Response:
    return PlainTextResponse(f"{words}\n", status_code=status, headers={"Cache-Control": "no-store"})


def _holder(books: Books, token: str) -> Instance | None:
    digest = token_digest(token)
    listed = (instance for instance in books.listed_instances() if instance.script_token is not None)
    return next((one for one in listed if hmac.compare_digest(str(one.script_token), digest)), None)


def _birth(instance: Instance, books: Books) -> Birth:
    """The machine as it was ordered.

    Raises:
        KeyError: the catalogue does not have its type.
    """
    spec = books.groups[instance.node_group].spec
    return Birth(
        name=instance.name,
        spec=spec,
        kind=books.cloud.catalogue[instance.instance_type or spec.instance_type],
        contract=instance.contract or spec.contracts[0],
        location=instance.location or spec.locations[0],
        cluster=books.installation.cluster_name,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """What a script server without books knows: groups, their scripts, the catalogue, and who may ask."""

    specs: Mapping[str, NodeGroupSpec]
    sources: Mapping[str, ScriptSource]
    catalogue: Mapping[str, InstanceType]
    cluster: str
    token: str | None


def plain_pages(shop: Shop) -> Starlette:
    """`GET /script?node_group=…&hostname=…` for whoever shows the shared token, or for anybody without one.

    `location` and `contract` may be given as well; without them the group's first are meant.
    """

    def script(request: Request) -> Response:
        shown = _token(request) or ""
        source = request.client.host if request.client is not None else "unknown"
        if shop.token is not None and not hmac.compare_digest(shown.encode(), shop.token.encode()):
            _log.warning("startup script refused", source=source)
            return _refusal(403, "show the token")
        query = request.query_params
        group, hostname = query.get("node_group", ""), query.get("hostname", "")
        if group not in shop.sources or not hostname:
            return _refusal(404, f"name a hostname and one of the node groups {', '.join(shop.sources)}")
        try:
            text = shop.sources[group].script(_asked(shop, group, hostname, query)).text
        except (KeyError, ValueError, ScriptError) as error:
            _log.error("startup script cannot be made", node_group=group, error=str(error))
            return _refusal(503, "the script cannot be made")
        _log.info("startup script served", node_group=group, hostname=hostname, source=source)
        return Response(text, media_type=_TYPE, headers={"Cache-Control": "no-store"})

    return Starlette(routes=[Route("/script", script)])


def _asked(shop: Shop, group: str, hostname: str, query: Mapping[str, str]) -> Birth:
    spec = shop.specs[group]
    return replace(
        sample_birth(spec, shop.cluster),
        name=hostname,
        kind=shop.catalogue[spec.instance_type],
        location=query.get("location") or spec.locations[0],
        contract=Contract(query["contract"]) if query.get("contract") else spec.contracts[0],
    )
