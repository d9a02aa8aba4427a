"""Health, readiness, metrics and the dashboard: what a kubelet, a Prometheus and a person ask for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from app.ledger.ledger import Ledger
from app.ledger.serving import Reason, complaints, remarks
from app.web.dashboard import Dashboard
from app.web.guard import Guard


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the pages are made of.

    `required` tells what keeps it from serving besides the state of its books, `optional` what hinders parts that
    scaling does not depend on: remarks that never make the answer "not ready".
    Who shows the token in `token_file` sees everything, others only whether it lives and is ready; None opens all.
    """

    ledger: Ledger
    registry: CollectorRegistry
    is_alive: Callable[[], bool]
    dashboard: Dashboard
    required: Callable[[], Sequence[Reason]] = tuple
    optional: Callable[[], Sequence[Reason]] = tuple
    token_file: Path | None = None


def build_pages(parts: Parts) -> ASGIApp:
    """`/healthz`: the process works. `/readyz`: it can do its job, reasons as JSON. `/metrics`: for Prometheus. `/`.

    Raises:
        ConfigurationError: the token's file holds none.
    """
    ledger = parts.ledger

    def healthz(_request: Request) -> Response:
        if parts.is_alive():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("a background job has been stuck for too long\n", status_code=503)

    def readyz(_request: Request) -> Response:
        reasons = (*parts.required(), *complaints(ledger))
        body = {
            "ready": not reasons,
            "reasons": _as_json(reasons),
            "remarks": _as_json((*remarks(ledger.books), *parts.optional())),
            "position": ledger.head.position,
        }
        return JSONResponse(body, status_code=503 if reasons else 200)

    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(parts.registry), headers={"Content-Type": content_type})

    routes = [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
        Route("/metrics/", metrics),
        *parts.dashboard.routes(),
    ]
    if parts.token_file is None:
        return Starlette(routes=routes)
    return Guard(Starlette(routes=routes), parts.token_file)


def _as_json(reasons: Sequence[Reason]) -> list[Mapping[str, str]]:
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
