"""The configuration of the service: one frozen tree. The keys, types and defaults of the file are exactly these."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationInfo, field_validator

from app.config import fields as f
from app.config.groups import Group
from app.config.values import Address, Refused

DEFAULT_BASE_URL = "https://api.verda.com/v1"


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class Tls(f.Section):
    """Mutual TLS of the gRPC port: all three files or no section at all. They are read again when they change."""

    cert: f.FilePath = Field(description="Our certificate chain, PEM.")
    key: f.FilePath = Field(description="Our private key, PEM.")
    client_ca: f.FilePath = Field(description="Certificates of the authorities that may sign clients, PEM.")
    allowed_clients: tuple[f.Text, ...] = Field(
        default=(), description="Subject alternative names that may connect; empty means any client of client_ca."
    )


class Http(f.Section):
    """The HTTP port: /healthz, /readyz, /metrics and the dashboard."""

    listen: f.ListenAddress = Field(default=Address("127.0.0.1", 8087), description="Address of the HTTP port.")
    token_file: f.FilePath | None = Field(
        default=None, description="A file with the bearer token that everything but /healthz and /readyz asks for."
    )


class Verda(f.Section):
    """The account at Verda and how hard its API may be used."""

    base_url: f.Url = Field(
        default=DEFAULT_BASE_URL, description="Verda's API. Without the key, VERDA_BASE_URL of the environment."
    )
    client_id: f.Text | None = Field(
        default=None,
        description="Id of the API credentials. Without the key, VERDA_CLIENT_ID or DATACRUNCH_CLIENT_ID.",
    )
    client_secret: SecretStr | None = Field(
        default=None,
        description="Secret of the API credentials. Without the key, VERDA_CLIENT_SECRET or DATACRUNCH_CLIENT_SECRET.",
    )
    client_secret_file: f.FilePath | None = Field(
        default=None, description="A file that holds the secret, instead of client_secret."
    )
    timeout: f.Duration = Field(default=timedelta(seconds=30), description="Longest time for one call, all in all.")
    rate_share: f.Share = Field(
        default=0.5, description="Share of the project's request budget that we may use; the rest is for other tools."
    )
    parallel_creates: f.Parallel = Field(default=8, description="Creations under way at the same time.")
    list_lag: f.Duration = Field(
        default=timedelta(seconds=90),
        description="How long a new machine may be missing from lists before its absence means anything.",
    )

    def missing_credentials(self) -> tuple[str, ...]:
        """The keys that a call to the real API would need and that are not set."""
        named = (("client_id", self.client_id), ("client_secret", self.client_secret))
        return tuple(name for name, value in named if value is None)


class Intervals(f.Section):
    """How often the jobs look, besides being woken by commands."""

    observe: f.Duration = Field(default=timedelta(seconds=10), description="Between two listings of the machines.")
    catalog: f.Duration = Field(default=timedelta(minutes=5), description="Between two looks at types and prices.")
    housekeeping: f.Duration = Field(default=timedelta(minutes=10), description="Between two rounds of tidying up.")


class Backup(f.Section):
    """Copies of the database, made while it is in use."""

    directory: f.FilePath | None = Field(
        default=None, description="Where the copies are kept; null means the directory `backups` beside the database."
    )
    every: f.Duration = Field(default=timedelta(hours=1), description="Time between two copies.")
    keep: f.PositiveCount = Field(default=24, description="Number of copies to keep.")


class Logging(f.Section):
    """What the process says of itself."""

    level: Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_lower)] = Field(
        default="info", description="Least important level that is written, in any case."
    )
    format: Literal["auto", "console", "json"] = Field(
        default="auto", description="auto is console on a terminal and json elsewhere."
    )


class CleanUpNodes(f.Section):
    """Removal of Node objects whose machine is proven gone."""

    after_not_ready: f.Duration = Field(
        default=timedelta(minutes=5),
        description="How long the node must have been not ready. Nodes of evicted machines go at once.",
    )
    max_per_sweep: f.PositiveCount = Field(default=10, description="Most nodes removed in one round.")
    dry_run: f.Truth = Field(default=False, description="Only say what would be removed.")


class Kubernetes(f.Section):
    """Work on the cluster's own objects."""

    enabled: f.Truth = Field(default=False, description="Whether to talk to the cluster at all.")
    kubeconfig: f.FilePath | None = Field(
        default=None, description="How to reach the cluster; null means from inside, with the pod's account."
    )
    clean_up_nodes: CleanUpNodes = Field(
        default_factory=CleanUpNodes, description="Removal of Node objects whose machine is proven gone."
    )
    repair_provider_id: f.Truth = Field(default=True, description="Give a node without provider id its own, once.")
    learn_templates: f.Truth = Field(default=True, description="Correct templates by what real nodes report.")
    label_nodes: f.Truth = Field(
        default=False,
        description=(
            "Give nodes the labels of their group that a kubelet may not give itself, "
            "and those of the contract and the location that were obtained."
        ),
    )
    events: f.Truth = Field(default=True, description="Write Kubernetes events.")
    bootstrap_token_groups: f.BootstrapGroups = Field(
        default=("system:bootstrappers:kubeadm:default-node-token",),
        description="Groups that join tokens made for machines belong to; with k3s, `…:k3s:default-node-token`.",
    )
    endpoint: f.Text | None = Field(default=None, description="Older key without effect.")
    token: SecretStr | None = Field(default=None, description="Older key without effect.")
    ca_hash: f.Text | None = Field(default=None, description="Older key without effect.")


class Expander(f.Section):
    """The service behind the autoscaler's --expander=grpc, on a port of its own: all keys or no section."""

    listen: f.ListenAddress = Field(description="Address of the expander's port, which always speaks TLS.")
    cert: f.FilePath = Field(description="Certificate chain that the autoscaler checks, PEM.")
    key: f.FilePath = Field(description="Its private key, PEM.")


class StartupScriptServer(f.Section):
    """A server from which machines fetch their startup script."""

    listen: f.ListenAddress | None = Field(default=None, description="Address to serve scripts on; both keys or none.")
    url: f.Url | None = Field(
        default=None,
        validate_default=True,
        description="How machines reach it, up to and with /script, for example https://10.0.0.10:8088/script.",
    )

    @field_validator("url")
    @classmethod
    def _both_or_none(cls, url: str | None, info: ValidationInfo) -> str | None:
        if (url is None) != (info.data.get("listen") is None):
            raise Refused(
                "must be given together with listen", remedy="give both or none", fields=(("url",), ("listen",))
            )
        return url


class Config(f.Section):
    """Everything the operator decides."""

    cluster_name: f.ClusterName | None = Field(
        default=None,
        description=(
            "Name of the cluster in the mark on our machines. "
            "Without it, machines must be claimed by hand after a loss of the database."
        ),
    )
    listen: f.ListenAddress = Field(default=Address("127.0.0.1", 8086), description="Address of the gRPC port.")
    insecure: f.Truth = Field(
        default=False, description="Allow a gRPC port that other machines can reach without TLS, said out loud."
    )
    tls: Tls | None = Field(
        default=None, validate_default=True, description="Mutual TLS of the gRPC port: all three files or none."
    )
    http: Http = Field(default_factory=Http, validate_default=True, description="The HTTP port.")
    database: f.DatabasePath = Field(
        default=Path("var/provider.db"), description="The database file; its lock file stands beside it."
    )
    database_network_filesystems: tuple[f.Text, ...] = Field(
        default=(),
        description="Types of network file systems, such as nfs4, that the database may lie on; locks there can lie.",
    )
    provider_id_template: f.ProviderIdTemplate = Field(
        default="verda://{hostname}",
        description=(
            "Form of the provider ids, made of {hostname}, {instance_id}, {location} and {group}. "
            "With {instance_id} an id is provisional until Verda has given the instance its own."
        ),
    )
    gpu_label: f.LabelKey = Field(
        default="verda.com/gpu",
        description="Label that marks GPU nodes. The autoscaler remembers it: never change it on a running cluster.",
    )
    claim: Literal["manual", "auto"] = Field(
        default="manual",
        description="Whether machines of a lost database of this cluster are taken over by themselves.",
    )
    orphans: Literal["adopt", "delete", "report"] = Field(
        default="adopt", description="What to do with machines that carry our mark and are not in our books."
    )
    orphan_grace: f.AnyDuration = Field(
        default=timedelta(minutes=10),
        description="How long such a machine is left alone before `orphans: delete` deletes it. "
        "Taking in and reporting wait for nothing.",
    )
    verda: Verda = Field(default_factory=Verda, description="The account at Verda.")
    intervals: Intervals = Field(default_factory=Intervals, description="How often the jobs look.")
    loss_brake: f.Share = Field(
        default=0.2, description="Share of the live instances that may be believed lost at once."
    )
    max_hourly_cost: f.Money | None = Field(
        default=None,
        description="Refuse growth when all groups would cost more than this per hour, in the catalogue's currency.",
    )
    balance_runway: f.Duration | None = Field(
        default=None,
        description="Refuse growth when the balance would not last this long, counting this provider's machines.",
    )
    backup: Backup = Field(default_factory=Backup, description="Copies of the database.")
    logging: Logging = Field(default_factory=Logging, description="What the process says of itself.")
    kubernetes: Kubernetes = Field(default_factory=Kubernetes, description="Work on the cluster's own objects.")
    expander: Expander | None = Field(
        default=None, description="The service that chooses among scale-up options by live prices and stock."
    )
    startup_script_server: StartupScriptServer = Field(
        default_factory=StartupScriptServer, description="A server for startup scripts."
    )
    node_groups: dict[f.GroupName, Group] = Field(description="The node groups by name; {} if there really are none.")

    @field_validator("tls")
    @classmethod
    def _not_open_by_accident(cls, tls: Tls | None, info: ValidationInfo) -> Tls | None:
        listen = info.data.get("listen")
        if (
            isinstance(listen, Address)
            and not listen.is_loopback()
            and tls is None
            and not info.data.get("insecure", True)
        ):
            raise Refused(
                f"{listen} can be reached from other machines, and whoever reaches it can order and delete machines",
                remedy="say insecure: true out loud, or add tls, or listen on 127.0.0.1",
                fields=(("listen",),),
            )
        return tls

    @field_validator("http")
    @classmethod
    def _ports_of_their_own(cls, http: Http, info: ValidationInfo) -> Http:
        listen = info.data.get("listen")
        if isinstance(listen, Address) and listen.overlaps(http.listen):
            raise Refused(
                f"gRPC on {listen} and HTTP on {http.listen} cannot share a port",
                remedy="give one of them another",
                fields=(("http", "listen"), ("listen",)),
            )
        return http
