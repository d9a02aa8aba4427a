"""Whatever a file holds, loading it ends in a configuration or in a list of problems."""

import random
from decimal import Decimal

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from app.config import shape
from app.config.load import LoadedConfig, load
from app.config.specs import to_specs
from app.errors import ConfigurationError

from .harness import GROUP, Desk, outcome
from .test_documents import EXAMPLE, OLDER

SOUND = [EXAMPLE.read_text(), OLDER.read_text(), GROUP]
NASTY = [
    "{", "}", "[", "]", ":", "&a", "*a", "<<: ", "!!binary ", "!x", "${", "$${A}", "'", '"', "\t", "\n", "#", "-",
    "~", "|", "%", "\\", "\0", "é", "null", "1e999999999", "-.inf", "0x7f",
]  # fmt: skip


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """One directory for all the files of this module: they overwrite each other."""
    return Desk(tmp_path_factory.mktemp("fuzz"))


def try_to_load(desk: Desk, text: str | bytes) -> LoadedConfig | None:
    """Load, and judge what comes out of it."""
    path = desk.write(text)
    end = outcome(lambda: load(path, environ={"A": "x"}))
    if isinstance(end, ConfigurationError):
        assert end.problems
        for problem in end.problems:
            assert problem.message
            assert problem.line is None or problem.line >= 1
            assert "\n" not in str(problem)
            str(problem).encode()
        return None
    to_specs(end.config)
    assert end.config.model_dump_json()
    return end


@settings(max_examples=250, deadline=None)
@given(text=st.sampled_from(SOUND), chance=st.randoms(use_true_random=False))
def test_mutated_examples(desk: Desk, text: str, chance: random.Random) -> None:
    """Pieces cut out, moved, doubled, and nasty ones put in."""
    for _ in range(chance.randint(1, 4)):
        start, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        end = min(end, start + 40)
        piece = chance.choice([*NASTY, text[start:end] * 2, ""])
        text = text[:start] + piece + text[end:]
    try_to_load(desk, text)


@settings(max_examples=100, deadline=None)
@given(text=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "replace")))
def test_arbitrary_bytes(desk: Desk, text: bytes) -> None:
    """Files that were never meant to be a configuration."""
    try_to_load(desk, text)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["10s", "1h", "FIN-01", "a=b:NoSchedule", "127.0.0.1:1", "16Gi", "0.5", "${A}", "spot_only", "SPOT"]
    )
)


def keys_at(path: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Mostly keys that are known there."""
    known = shape.known_keys(path) or ("a", "cpu", "memory_gb", "verda.com/gpu")
    return st.sampled_from(known) | st.text(max_size=6)


def values_at(path: tuple[str, ...], depth: int = 3) -> st.SearchStrategy[object]:
    """Values of any kind, and below the top sections with mostly known keys."""
    if depth == 0:
        return SCALARS
    return (
        SCALARS
        | st.lists(SCALARS | st.dictionaries(st.text(max_size=4), SCALARS, max_size=2), max_size=3)
        | keys_at(path).flatmap(lambda key: st.fixed_dictionaries({key: values_at((*path, key), depth - 1)}))
    )


@settings(max_examples=100, deadline=None)
@given(
    top=st.dictionaries(st.sampled_from(shape.known_keys(())), st.none(), max_size=4).flatmap(
        lambda keys: st.fixed_dictionaries({key: values_at((key,)) for key in keys})
    ),
    group=st.dictionaries(st.sampled_from(shape.known_keys(("node_groups", "g"))), st.none(), max_size=5).flatmap(
        lambda keys: st.fixed_dictionaries({key: values_at(("node_groups", "g", key), 2) for key in keys})
    ),
)
def test_any_values_under_known_keys(desk: Desk, top: dict[str, object], group: dict[str, object]) -> None:
    """The right keys with the wrong things in them."""
    sound = yaml.safe_load(GROUP)
    sound["node_groups"]["gpu"] |= group
    try_to_load(desk, yaml.safe_dump({**sound, **top}, allow_unicode=True))


@settings(max_examples=60, deadline=None)
@given(price=st.decimals(min_value="0.0001", max_value="1000000", places=4), size=st.integers(0, 1_000_000))
def test_sound_values_arrive_exactly(desk: Desk, price: Decimal, size: int) -> None:
    """Whatever the price, no digit is lost."""
    text = GROUP.replace("max_size: 3", f"max_size: {size}") + f"    hourly_price: {price}\n"
    loaded = try_to_load(desk, text)
    assert loaded is not None
    (spec,) = to_specs(loaded.config)
    assert (spec.hourly_price, spec.max_size) == (price, size)


def test_a_thousand_groups_load_in_a_moment(desk: Desk) -> None:
    """And a thousand mistakes are told in one."""
    lines = [f"  g{n}: {{instance_type: x, image: y, max_size: {n}, location: z}}\n" for n in range(1000)]
    loaded = try_to_load(desk, "node_groups:\n" + "".join(lines))
    assert loaded is not None
    assert len(to_specs(loaded.config)) == 1000
    wrong = "node_groups:\n" + "".join(line.replace("location", "locatoin") for line in lines[:200])
    assert len(desk.problems(wrong)) == 400
