"""Durations and their distributions."""

import math
import random
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Seconds = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    """A part of the configuration: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Span(Section):
    """A duration or its distribution, in seconds.

    `{median, p95, low, high}` is log-normal, clipped; `{low, high}` is uniform; a bare number is itself.
    """

    seconds: Seconds | None = None
    median: Seconds | None = None
    p95: Seconds | None = None
    low: Seconds = 0.0
    high: Seconds | None = None

    @model_validator(mode="before")
    @classmethod
    def _bare_number(cls, value: object) -> object:
        return {"seconds": value} if isinstance(value, int | float) else value

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.seconds is None and self.median is None and self.high is None:
            raise ValueError("give a number, {low, high} or {median, p95, low, high}")
        if self.high is not None and self.high < self.low:
            raise ValueError("high must not be below low")
        if self.median is not None and (self.p95 is None or not 0 < self.median <= self.p95):
            raise ValueError("a log-normal span needs 0 < median <= p95")
        return self

    def draw(self, generator: random.Random) -> float:
        """Seconds; always exactly one draw is taken from the generator."""
        if self.seconds is not None:
            generator.random()
            return self.seconds
        if self.median is None or self.p95 is None:
            return generator.uniform(self.low, self.high or self.low)
        sigma = math.log(self.p95 / self.median) / 1.6449 or 1e-9
        drawn = generator.lognormvariate(math.log(self.median), sigma)
        return min(max(drawn, self.low), self.high if self.high is not None else math.inf)
