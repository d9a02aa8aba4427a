"""The cluster side put together from its section of the configuration."""

import socket
from collections.abc import Sequence

from app.clock import Clock, Ids
from app.config.model import Kubernetes
from app.kube.jobs.announce import Announce
from app.kube.jobs.bench import Bench, Work
from app.kube.jobs.clean_up import CleanUp
from app.kube.jobs.cluster import TendCluster
from app.kube.jobs.join import Join, LearnTemplates, RepairProviderIds
from app.kube.jobs.prepare import PrepareNodes
from app.kube.jobs.tokens import RevokeJoinTokens, StandingTokens, WatchJoinTokens
from app.kube.lightkube import LightkubeCluster, own_subject, read_kubeconfig
from app.kube.tokens import Mint
from app.kube.troubles import Troubles
from app.ledger.ledger import Ledger
from app.ledger.serving import Reason


class ClusterSide:
    """What follows the nodes, and the job that tends them. Calls nobody before it is started."""

    def __init__(self, settings: Kubernetes, clock: Clock) -> None:
        """Raises: ConfigurationError if there is no way to the cluster."""
        config = read_kubeconfig(settings.kubeconfig)
        self._settings = settings
        self._clock = clock
        self._us = own_subject(config, settings.kubeconfig, socket.gethostname())
        self._cluster = LightkubeCluster(config, clock)
        self._troubles = Troubles()

    def mint(self, ledger: Ledger, ids: Ids) -> Mint:
        """What makes join tokens for machines, with these books."""
        groups = self._settings.bootstrap_token_groups
        return Mint(ledger=ledger, cluster=self._cluster, clock=self._clock, ids=ids, groups=groups)

    def job(self, ledger: Ledger, ids: Ids, mint: Mint, standing: StandingTokens) -> TendCluster:
        """The job over these books. Once: it listens to the ledger from now on."""
        bench = Bench(ledger=ledger, cluster=self._cluster, clock=self._clock, ids=ids)
        tokens = (
            RevokeJoinTokens(bench=bench, under_way=lambda: mint.under_way),
            WatchJoinTokens(bench=bench, standing=standing),
        )
        return TendCluster(bench=bench, works=(*self._works(bench), *tokens), troubles=self._troubles)

    def _works(self, bench: Bench) -> Sequence[Work]:
        settings, nodes = self._settings, self._settings.clean_up_nodes
        works: list[Work] = [Join(bench=bench, repairs=settings.repair_provider_id)]
        if settings.repair_provider_id:
            works.append(RepairProviderIds(bench=bench))
        if settings.learn_templates:
            works.append(LearnTemplates(bench=bench))
        works.append(PrepareNodes(bench=bench, labels=settings.label_nodes))
        works.append(CleanUp(bench=bench, grace=nodes.after_not_ready, most=nodes.max_per_sweep, dry_run=nodes.dry_run))
        if settings.events:
            announce = Announce(bench=bench, us=self._us)
            bench.ledger.subscribe(announce.on_recorded)
            works.append(announce)
        return works

    def reasons(self) -> Sequence[Reason]:
        """What hinders it."""
        return self._troubles.reasons()

    def start(self) -> None:
        """Begin to follow the nodes."""
        self._cluster.start()

    def close(self) -> None:
        """Stop following them."""
        self._cluster.close()
