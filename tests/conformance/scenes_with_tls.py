"""A provider that speaks mutual TLS, and everybody's certificates."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from .certificates import Pair, issue, make_authority
from .provider import Stage
from .scenes import MakeStage
from .settings import shared_groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Secured:
    """`authority` has signed the certificates of the provider and of `client`; `stranger` has another authority's."""

    stage: Stage
    authority: Pair
    client: Pair
    stranger: Pair

    @classmethod
    @contextmanager
    def play(cls, make_stage: MakeStage, directory: Path) -> Iterator[Self]:
        """Just started."""
        authority, other = make_authority(directory, "authority"), make_authority(directory, "other")
        server = issue(authority, directory, "server", "DNS:localhost,IP:127.0.0.1")
        tls = {"cert": str(server.cert), "key": str(server.key), "client_ca": str(authority.cert)}
        with make_stage(shared_groups(), tls=tls) as stage:
            yield cls(
                stage=stage,
                authority=authority,
                client=issue(authority, directory, "client", "DNS:cluster-autoscaler"),
                stranger=issue(other, directory, "stranger", "DNS:cluster-autoscaler"),
            )
