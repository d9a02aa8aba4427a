"""The types of configuration values: how one is read, what the reference page calls it, how it is written back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from app.config import kubernetes, values
from app.domain.nodegroup.spec import GROUP_NAME


@dataclass(frozen=True, slots=True)
class Named:
    """What the reference page calls a type."""

    name: str


class Section(BaseModel):
    """A mapping of the configuration. Unknown keys are errors; a key without a value means its default."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _nothing_means_default(cls, data: object) -> object:
        if data is None:
            return {}
        return without_nulls(data)


def without_nulls(data: object) -> object:
    """A mapping without its empty keys; anything else as it is."""
    if isinstance(data, Mapping):
        return {key: value for key, value in data.items() if value is not None}
    return data


def _word(value: object) -> str:
    word = values.text(value)
    # These travel in paths and queries of the cloud's API, so its alphabet is the limit.
    if not 0 < len(word) <= 128 or not all(mark.isascii() and (mark.isalnum() or mark in "._~-") for mark in word):  # noqa: PLR2004
        raise values.Refused("must be one word of letters, digits and . _ ~ -")
    return word


def some_text(value: object) -> str:
    """Text that is more than blanks."""
    if not (some := values.text(value)).strip():
        raise values.Refused("must not be empty")
    return some


def _path(value: object) -> Path:
    return value if isinstance(value, Path) else Path(some_text(value))


def _database(value: object) -> Path:
    path = _path(value)
    if "://" in str(value) or str(value) == ":memory:" or str(value).startswith("file:"):
        raise values.Refused("must be the path of a file", remedy="write it like var/provider.db")
    return path


def _cluster_name(value: object) -> str:
    name = values.text(value)
    if not GROUP_NAME.fullmatch(name.lower().replace("_", "-").replace(".", "-")):
        rule = "letters, digits, - _ . beginning with a letter, at most 50 characters"
        raise values.Refused("must be a name without spaces", remedy=rule)
    return name


def _group_name(value: object) -> str:
    name = values.text(value)
    if not GROUP_NAME.fullmatch(name):
        raise values.Refused(
            "must be lower-case letters, digits and hyphens, beginning with a letter, at most 50 characters"
        )
    return name


Text = Annotated[str, BeforeValidator(some_text), Named("text")]
Word = Annotated[str, BeforeValidator(_word), Named("word")]
FilePath = Annotated[Path, BeforeValidator(_path), Named("path")]
DatabasePath = Annotated[Path, BeforeValidator(_database), Named("path")]
Truth = Annotated[bool, BeforeValidator(values.truth), Named("true or false")]
Count = Annotated[int, BeforeValidator(values.whole_number), Field(ge=0, le=1_000_000), Named("whole number")]
PositiveCount = Annotated[int, BeforeValidator(values.whole_number), Field(ge=1, le=1_000_000), Named("whole number")]
Parallel = Annotated[int, BeforeValidator(values.whole_number), Field(ge=1, le=64), Named("whole number")]
Money = Annotated[Decimal, BeforeValidator(values.number), Field(gt=0, le=1_000_000), Named("money per hour")]
Share = Annotated[float, BeforeValidator(values.number), Field(gt=0, le=1), Named("share, 0 to 1")]
Threshold = Annotated[float, BeforeValidator(values.number), Field(ge=0, le=1), Named("share, 0 to 1")]
Url = Annotated[str, BeforeValidator(values.url), Named("URL")]
ClusterName = Annotated[str, BeforeValidator(_cluster_name), Named("name")]
GroupName = Annotated[str, BeforeValidator(_group_name), Named("group name")]
ProviderIdTemplate = Annotated[str, BeforeValidator(values.provider_id_template), Named("template")]

_DURATION_SCHEMA = WithJsonSchema({"type": "string", "pattern": r"^(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?$"})
AnyDuration = Annotated[
    timedelta,
    BeforeValidator(values.duration),
    PlainSerializer(values.duration_text, when_used="json"),
    _DURATION_SCHEMA,
    Named("duration"),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(values.duration),
    AfterValidator(values.positive),
    PlainSerializer(values.duration_text, when_used="json"),
    _DURATION_SCHEMA,
    Named("duration"),
]
ListenAddress = Annotated[
    values.Address,
    BeforeValidator(values.address),
    PlainSerializer(str, when_used="json"),
    WithJsonSchema({"type": "string"}),
    Named("host:port"),
]

LabelKey = Annotated[str, BeforeValidator(kubernetes.label_key), Named("label key")]
LabelValue = Annotated[str, BeforeValidator(kubernetes.label_value), Named("label value")]
Labels = Annotated[dict[LabelKey, LabelValue], Named("labels")]
BootstrapGroups = Annotated[
    tuple[Annotated[str, BeforeValidator(kubernetes.bootstrap_group)], ...],
    AfterValidator(kubernetes.at_least_one),
    Named("groups"),
]
Quantity = Annotated[str, BeforeValidator(kubernetes.quantity), Named("quantity")]
Resources = Annotated[
    dict[Annotated[str, BeforeValidator(kubernetes.resource_name)], Quantity],
    BeforeValidator(without_nulls),
    Named("quantities"),
]
Reserved = Annotated[
    dict[Annotated[str, BeforeValidator(kubernetes.reservable_name)], Quantity],
    BeforeValidator(without_nulls),
    Named("quantities"),
]
