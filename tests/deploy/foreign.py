"""What the kinds of cert-manager and the Prometheus operator, and a compose file, may hold, as far as ours use it.

Closed: a key that is not here is a misspelling, which an API server would drop without a word, or new to us.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import jsonschema

Schema: TypeAlias = Mapping[str, Any]

TEXT: Final = {"type": "string", "minLength": 1}
TEXTS: Final = {"type": "array", "items": TEXT, "minItems": 1, "uniqueItems": True}
GO_DURATION: Final = {"type": "string", "pattern": r"^([0-9]+(h|m|s|ms))+$"}
PROMETHEUS_DURATION: Final = {"type": "string", "pattern": r"^([0-9]+(y|w|d|h|m|s|ms))+$"}
LABELS: Final = {"type": "object", "additionalProperties": TEXT}


def closed(required: str = "", **keys: Any) -> Schema:
    """An object with these keys and no others, of which some must be there."""
    return {"type": "object", "properties": keys, "required": required.split(), "additionalProperties": False}


_ISSUER_REF = closed("name", name=TEXT, kind={"enum": ["Issuer", "ClusterIssuer"]}, group={"const": "cert-manager.io"})
_PRIVATE_KEY = closed(
    algorithm={"enum": ["RSA", "ECDSA", "Ed25519"]},
    size={"enum": [256, 384, 521, 2048, 3072, 4096]},
    rotationPolicy={"enum": ["Always", "Never"]},
    encoding={"enum": ["PKCS1", "PKCS8"]},
)
_CERTIFICATE = closed(
    "secretName issuerRef",
    secretName=TEXT,
    issuerRef=_ISSUER_REF,
    isCA={"type": "boolean"},
    commonName={**TEXT, "maxLength": 64},
    dnsNames=TEXTS,
    duration=GO_DURATION,
    renewBefore=GO_DURATION,
    privateKey=_PRIVATE_KEY,
    usages={"type": "array", "items": {"enum": ["server auth", "client auth", "digital signature", "cert sign"]}},
)
_ISSUER = {
    **closed(selfSigned=closed(), ca=closed("secretName", secretName=TEXT)),
    "minProperties": 1,
    "maxProperties": 1,
}
_MONITOR = closed(
    "selector endpoints",
    selector=closed("matchLabels", matchLabels=LABELS),
    endpoints={
        "type": "array",
        "minItems": 1,
        "items": closed(
            "port",
            port=TEXT,
            path={"type": "string", "pattern": "^/"},
            interval=PROMETHEUS_DURATION,
            authorization=closed(
                "credentials", type=TEXT, credentials=closed("name key", name=TEXT, key=TEXT, optional={})
            ),
        ),
    },
)
_ALERT = closed(
    "alert expr annotations labels",
    **{"for": PROMETHEUS_DURATION},
    alert={"type": "string", "pattern": "^[A-Za-z]+$"},
    expr=TEXT,
    labels=LABELS,
    annotations=closed("summary description", summary=TEXT, description=TEXT),
)
_GROUP = closed(
    "name rules", name=TEXT, interval=PROMETHEUS_DURATION, rules={"type": "array", "minItems": 1, "items": _ALERT}
)
_RULES = closed("groups", groups={"type": "array", "items": _GROUP})
KINDS: Final[Mapping[str, tuple[str, Schema]]] = {
    "Certificate": ("cert-manager.io/v1", _CERTIFICATE),
    "Issuer": ("cert-manager.io/v1", _ISSUER),
    "ServiceMonitor": ("monitoring.coreos.com/v1", _MONITOR),
    "PrometheusRule": ("monitoring.coreos.com/v1", _RULES),
}
"""Kinds whose schemas are not Kubernetes' own → their API version and what `spec` may hold."""

_SERVICE = closed(
    "image",
    image=TEXT,
    build=closed("context", context=TEXT, dockerfile=TEXT),
    command={"type": "array", "items": TEXT},
    environment={"type": "object"},
    secrets=TEXTS,
    ports={"type": "array", "items": {"type": "string", "pattern": r"^[0-9.]+:[0-9]+:[0-9]+$"}},
    volumes={"type": "array", "items": {"type": "string", "pattern": r"^[^:]+:/[^:]*(:ro)?$"}},
    tmpfs=TEXTS,
    read_only={"type": "boolean"},
    user={"type": "string", "pattern": "^[1-9][0-9]*:[1-9][0-9]*$"},
    cap_drop=TEXTS,
    security_opt=TEXTS,
    restart={"enum": ["no", "always", "on-failure", "unless-stopped"]},
    stop_grace_period=GO_DURATION,
)
COMPOSE: Final = closed(
    "name services",
    name={"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]*$"},
    services={"type": "object", "additionalProperties": _SERVICE},
    volumes={"type": "object", "additionalProperties": closed()},
    secrets={"type": "object", "additionalProperties": closed("file", file=TEXT)},
)


def check(manifest: Mapping[str, Any]) -> None:
    """An object of one of `KINDS`.

    Raises:
        jsonschema.ValidationError: it has something that does not belong there, or lacks something.
    """
    version, spec = KINDS[manifest["kind"]]
    metadata = closed("name", name=TEXT, namespace=TEXT, labels=LABELS, annotations=LABELS)
    whole = closed(
        "apiVersion kind metadata spec", apiVersion={"const": version}, kind={}, metadata=metadata, spec=spec
    )
    jsonschema.validate(manifest, whole)
