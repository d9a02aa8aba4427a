"""Health, readiness and metrics: what a kubelet and a Prometheus ask for."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, make_asgi_app
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from app.ledger.ledger import Ledger
from app.ledger.serving import Reason, complaints, remarks


def build_pages(
    ledger: Ledger,
    registry: CollectorRegistry,
    is_alive: Callable[[], bool],
    optional: Callable[[], Sequence[Reason]] = tuple,
) -> Starlette:
    """`/healthz`: the process works. `/readyz`: it can do its job, reasons as JSON. `/metrics`: Prometheus text.

    `optional` tells what hinders parts that scaling does not depend on: remarks that never make the answer "not ready".
    """

    def healthz(_request: Request) -> Response:
        if is_alive():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("a background job has been stuck for too long\n", status_code=503)

    def readyz(_request: Request) -> Response:
        reasons = complaints(ledger)
        body = {
            "ready": not reasons,
            "reasons": _as_json(reasons),
            "remarks": _as_json((*remarks(ledger.books), *optional())),
            "position": ledger.head.position,
        }
        return JSONResponse(body, status_code=503 if reasons else 200)

    return Starlette(
        routes=[
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Mount("/metrics", make_asgi_app(registry)),
        ]
    )


def _as_json(reasons: Sequence[Reason]) -> list[dict[str, str]]:
    return [{"code": reason.code, "message": reason.message} for reason in reasons]
