"""The pieces of a node group that are sections of their own."""

from datetime import timedelta
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from app.config import fields as f
from app.config import kubernetes
from app.config.values import Refused
from app.domain.nodegroup.spec import LiftedWhen, TaintEffect
from app.startup.variables import variable_names

T = TypeVar("T", bound="Taint")


class Taint(f.Section):
    """A taint, written as `key=value:Effect`, `key:Effect` or as an object."""

    key: f.LabelKey = Field(description="Key of the taint.")
    value: f.LabelValue = Field(default="", description="Value of the taint, may be empty.")
    effect: Annotated[TaintEffect, BeforeValidator(kubernetes.taint_effect)] = Field(
        description="What happens to pods that do not tolerate it."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return kubernetes.taint_parts(data) if isinstance(data, str) else data


class StartupTaint(Taint):
    """A taint that somebody takes off once the node is of use: the agent that it waits for, or we."""

    until: LiftedWhen | None = Field(
        default=None,
        description="When we take it off: ready, or gpus (ready and showing all GPU resources). null: somebody else.",
    )


def _each_once(taints: tuple[T, ...]) -> tuple[T, ...]:
    seen = [(taint.key, taint.effect) for taint in taints]
    for key, effect in seen:
        if seen.count((key, effect)) > 1:
            raise Refused(f"must not hold {key} with {effect} twice", remedy="Kubernetes refuses such a node")
    return taints


class OsVolume(f.Section):
    """The system disk of a machine."""

    size_gb: f.PositiveCount = Field(default=100, description="Size of the system disk, in GB as Verda counts them.")
    policy: Literal["permanent", "trash"] = Field(
        default="permanent",
        description="With its machine the disk is deleted at once, or kept and paid for in the trash for 96 hours.",
    )


class Stopped(f.Section):
    """What to do with machines that somebody switched off; they cost as much as running ones."""

    after: f.Duration = Field(default=timedelta(hours=1), description="How long a machine may be off before we act.")
    action: Literal["alarm", "delete"] = Field(default="alarm", description="Only say so, or delete the machine.")


_OURS = variable_names() | {"fetch_url", "fetch_token"}


def _value_name(value: object) -> str:
    name = f.some_text(value)
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise Refused("must be a name that a template can use", remedy="letters, digits and _, like join_token")
    if name in _OURS:
        raise Refused(
            "must not be the name of something that scripts know of their machine", remedy="call it otherwise"
        )
    return name


ScriptValueName = Annotated[str, BeforeValidator(_value_name), f.Named("name")]


class ScriptValue(f.Section):
    """A value for a startup script: text, `{file: …}`, `{env: …}` or `{bootstrap_token: …}`."""

    value: SecretStr | None = Field(default=None, description="The value itself.")
    file: f.FilePath | None = Field(default=None, description="A file that holds the value.")
    env: f.Text | None = Field(default=None, description="An environment variable that holds the value.")
    bootstrap_token: f.Duration | None = Field(
        default=None,
        description="Make a join token of the cluster's own for each machine, good for so long; needs `kubernetes`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"value": data} if isinstance(data, (str, SecretStr)) else data

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise Refused(
                "must be text, {file: …}, {env: …} or {bootstrap_token: …}", remedy="give exactly one of them"
            )
        return self


class AutoscalingOptions(f.Section):
    """Cluster Autoscaler's options for this group alone; whatever is not set follows the autoscaler's flags."""

    scale_down_utilization_threshold: f.Threshold | None = Field(
        default=None, description="Utilisation of cpu and memory below which a node may go."
    )
    scale_down_gpu_utilization_threshold: f.Threshold | None = Field(
        default=None, description="Utilisation of GPUs below which a GPU node may go."
    )
    scale_down_unneeded_time: f.AnyDuration | None = Field(
        default=None, description="How long a node must be unneeded before it goes."
    )
    scale_down_unready_time: f.AnyDuration | None = Field(
        default=None, description="How long an unready node must be unneeded before it goes."
    )
    max_node_provision_time: f.Duration | None = Field(
        default=None, description="How long the autoscaler waits for a new node."
    )
    zero_or_max_node_scaling: f.Truth | None = Field(
        default=None, description="Scale only between nothing and max_size, all nodes at once."
    )
    ignore_daemon_sets_utilization: f.Truth | None = Field(
        default=None, description="Leave DaemonSet pods out of the utilisation."
    )
    force_for_new_autoscalers: f.Truth = Field(
        default=False,
        description="Send these options also to Cluster Autoscaler 1.35 and newer, which then misjudge start-ups.",
    )


Taints = Annotated[tuple[Taint, ...], AfterValidator(_each_once), f.Named("taints")]
StartupTaints = Annotated[tuple[StartupTaint, ...], AfterValidator(_each_once), f.Named("taints")]
