"""The secrets of a configuration, for those who have to keep them out of what they write."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, SecretStr


def secrets_of(value: object) -> Iterator[str]:
    """Every secret in a configuration or a part of it."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_of(getattr(value, name))
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from secrets_of(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from secrets_of(each)
