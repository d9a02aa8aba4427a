"""The file as a whole: whether it is one, and what YAML can do to a reader."""

import hashlib
import os
from decimal import Decimal
from pathlib import Path

import pytest

from app.config.load import load

from .harness import GROUP, Desk, plain, refusal


def test_a_valid_file_loads(desk: Desk) -> None:
    """Six lines are enough."""
    loaded = desk.load(GROUP)
    assert list(loaded.config.node_groups) == ["gpu"]
    assert loaded.warnings == ()


def test_the_hash_is_of_the_bytes(desk: Desk) -> None:
    """So that a running and a changed file can be told apart, and a touched one not."""
    assert desk.load(GROUP).sha256 == hashlib.sha256(GROUP.encode()).hexdigest()
    assert desk.load(GROUP + "#").sha256 != desk.load(GROUP).sha256


def test_a_missing_file_is_one_clear_line(desk: Desk) -> None:
    """What a restart after the loss of a ConfigMap shows."""
    problems = refusal(lambda: load(desk.path, environ={}))
    assert [str(problem) for problem in problems] == [f"{desk.path}: there is no such file"]


def test_a_directory_is_not_a_file(desk: Desk) -> None:
    """A mount point is easily named instead of the file in it."""
    (problem,) = refusal(lambda: load(desk.directory, environ={}))
    assert "is a directory" in problem.message
    assert "name the file in it" in problem.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(desk: Desk) -> None:
    """The usual mistake with secrets mounted for another user."""
    desk.write(GROUP).chmod(0)
    (problem,) = refusal(lambda: load(desk.path, environ={}))
    assert "may not read it" in problem.message


def test_a_path_through_a_file(desk: Desk) -> None:
    """Whatever else the system says is passed on in its words."""
    inside = desk.write(GROUP) / "config.yaml"
    (problem,) = refusal(lambda: load(inside, environ={}, dotenv=None))
    assert problem.message == "cannot be read: Not a directory"


def test_a_name_no_file_can_have() -> None:
    """Python refuses it before the system can."""
    (problem,) = refusal(lambda: load(Path("a\0b"), environ={}, dotenv=None))
    assert problem.message == "cannot be read: its name is not a file name"


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n", "---\n", "null\n", "~"])
def test_an_empty_file_is_refused(desk: Desk, text: str) -> None:
    """A template that rendered to nothing must not retire every group."""
    assert desk.told(text) == [(None, "", "is empty: it needs at least node_groups")]


@pytest.mark.parametrize(("text", "kind"), [("\n- a\n- b\n", "a list"), ("\njust words\n", "text"), ("\n17\n", "text")])
def test_the_top_level_is_a_mapping(desk: Desk, text: str, kind: str) -> None:
    """Only the kind is told: a file of text may be a secret given by mistake."""
    assert desk.told(text) == [(2, "", f"must be a mapping of keys and values at the top level, is {kind}")]


def test_other_encodings_are_told_with_the_line(desk: Desk) -> None:
    """Editors on Windows save other encodings."""
    assert desk.told(b"a: 1\nb: \xff\n") == [(2, "", "is not UTF-8 (byte 0xff): save it as UTF-8")]
    assert "is not UTF-8" in desk.told(GROUP.encode("utf-16"))[0][2]


def test_a_byte_order_mark_is_fine(desk: Desk) -> None:
    """The same editors put one before UTF-8."""
    assert desk.told(GROUP.encode("utf-8-sig")) == []


def test_a_huge_file_is_not_read(desk: Desk) -> None:
    """A database or a core dump in place of the file must not fill the memory."""
    assert desk.told("#" * 1_048_577) == [(None, "", "is larger than 1048576 bytes: is it the right file?")]


def test_duplicate_keys_name_both_lines(desk: Desk) -> None:
    """YAML readers usually let the last one win, silently."""
    told = desk.told(GROUP + "    max_size: 4\nlisten: 127.0.0.1:1\nlisten: 127.0.0.1:2\n")
    assert told == [
        (7, "node_groups.gpu.max_size", "is given twice, first on line 5: keep one of them"),
        (9, "listen", "is given twice, first on line 8: keep one of them"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: [1, 2\nb: 3\n", 2, "expected ',' or ']'"),
        ("a: 1\n\tb: 2\n", 2, "a tab stands where only spaces may"),
        ("a: 1\n b: 2\n", 2, "mapping values are not allowed here"),
        ("a: *nobody\n", 1, "found undefined alias"),
        ("a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
        ("a: \x07\n", 1, "holds a control character"),
        ('a: "\\UFFFFFFFF"\n', None, "is no character"),
        ("a: &x 1\nb: &x 2\n", 2, "second occurrence"),
        ("a: @b\n", 1, "cannot start any token"),
        ("a: !<x\n", 1, "is not YAML"),
    ],
)
def test_broken_yaml_is_told_with_its_line(desk: Desk, text: str, line: int | None, words: str) -> None:
    """In words that do not need to know what a token is."""
    ((told_line, path, message),) = desk.told(text)
    assert (told_line, path) == (line, "")
    assert words in message


def test_deep_nesting_is_refused_before_it_hurts(desk: Desk) -> None:
    """Python's recursion limit would end the process in the middle of nowhere."""
    assert desk.told("\na: " + "[" * 50_000) == [(2, "", "is nested more than 32 levels deep")]


def test_multiplying_aliases_are_refused(desk: Desk) -> None:
    """The billion laughs: nine lines that stand for a billion values."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    ((_, path, message),) = desk.told("\n".join(lines))
    assert path == ""
    assert "more than 100000 values" in message


def test_multiplying_merges_are_refused(desk: Desk) -> None:
    """The same with `<<`, which adds no values at all."""
    lines = ["a0: &a0 {}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}, *a{n - 1}]}}" for n in range(1, 20))]
    ((_, _, message),) = desk.told("\n".join(lines))
    assert "more than 100000 values" in message


def test_a_value_that_holds_itself_is_refused(desk: Desk) -> None:
    """Valid YAML, and endless for whoever walks it."""
    told = desk.told(GROUP + "    taints: &t [*t]\n    labels: &l {<<: *l}\n")
    assert told == [
        (7, "node_groups.gpu.taints[0]", "holds itself through an alias"),
        (8, 'node_groups.gpu.labels["<<"]', "can only merge in other mappings"),
    ]


def test_merges_that_lead_back_are_refused(desk: Desk) -> None:
    """The same through merge keys."""
    told = desk.told(GROUP + "    labels:\n      <<: &a {<<: *a}\n")
    assert told == [(8, 'node_groups.gpu.labels["<<"]', "can only merge in other mappings")]


def test_aliases_and_merges_work(desk: Desk) -> None:
    """Own keys win over merged ones, earlier merges over later ones."""
    text = """\
node_groups:
  a: &a
    instance_type: 1A100.22V
    image: &image ubuntu-24.04
    max_size: 3
    location: FIN-01
  b:
    <<: *a
    max_size: 4
  c:
    <<: [{max_size: 5}, *a]
    image: *image
"""
    groups = desk.load(text).config.node_groups
    assert [group.model_dump(include={"max_size", "image"}) for group in groups.values()] == [
        {"image": "ubuntu-24.04", "max_size": 3},
        {"image": "ubuntu-24.04", "max_size": 4},
        {"image": "ubuntu-24.04", "max_size": 5},
    ]


def test_a_mistake_in_a_merged_value_is_told_where_it_stands(desk: Desk) -> None:
    """The line is that of the anchor: there it must be mended."""
    text = GROUP.replace("  gpu:", "  gpu: &gpu").replace("max_size: 3", "max_size: x") + "  b:\n    <<: *gpu\n"
    assert [told[:2] for told in desk.told(text)] == [(5, "node_groups.gpu.max_size"), (5, "node_groups.b.max_size")]


@pytest.mark.parametrize("tag", ["!!binary", "!!python/object/apply:os.system", "!mine", "!!set"])
def test_yaml_tags_are_refused(desk: Desk, tag: str) -> None:
    """They make readers build objects."""
    told = desk.told(GROUP + f"cluster_name: {tag} abc\n")
    assert told == [(7, "cluster_name", "has a YAML tag (!…) that is not used here: remove it")]


@pytest.mark.parametrize("value", ["!!omap [a: 1]", "!!set {a}"])
def test_yaml_tags_of_collections_are_refused(desk: Desk, value: str) -> None:
    """Also around collections."""
    assert [told[:2] for told in desk.told(GROUP + f"verda: {value}\n")] == [(7, "verda")]


def test_an_explicit_text_tag_is_fine(desk: Desk) -> None:
    """It says no more than quotes do."""
    assert desk.load(GROUP + "    labels: {a: !!str true}\n").config.node_groups["gpu"].labels == {"a": "true"}


@pytest.mark.parametrize("value", [r'"a\0b"', r'"\ud800"'])
def test_characters_that_are_none_are_refused(desk: Desk, value: str) -> None:
    """They would break logs and the database much later."""
    ((line, path, message),) = desk.told(GROUP + f"cluster_name: {value}\n")
    assert (line, path) == (7, "cluster_name")
    assert "holds a character that is none" in message


def test_a_key_must_be_text(desk: Desk) -> None:
    """YAML would allow a list."""
    told = desk.told(GROUP + "verda:\n  ? [a, b]\n  : 1\n")
    assert told == [(8, 'verda["?"]', "a key must be plain text")]


def test_keys_are_taken_as_written(desk: Desk) -> None:
    """YAML would read the keys yes and 1.0 as true and a number."""
    labels = desk.load(GROUP + '    labels: {yes: "a", 1.0: "b"}\n').config.node_groups["gpu"].labels
    assert labels == {"yes": "a", "1.0": "b"}


def test_money_is_exact(desk: Desk) -> None:
    """A price never passes through a binary fraction."""
    group = desk.load(GROUP + "    hourly_price: 0.60\n    max_hourly_cost: 7\n").config.node_groups["gpu"]
    assert str(group.model_dump()["hourly_price"]) == "0.60"
    assert group.model_dump()["max_hourly_cost"] == Decimal(7)


def test_a_key_without_a_value_means_its_default(desk: Desk) -> None:
    """What remains when everything below a key is commented out."""
    loaded = desk.load(GROUP + "    os_volume:\n    min_size: null\nhttp:\nverda: {timeout: ~}\ntls:\n")
    assert loaded.config == desk.load(GROUP).config


def test_a_required_key_without_a_value_is_missing(desk: Desk) -> None:
    """With the line of the key, which is there."""
    told = desk.told(GROUP.replace("max_size: 3", "max_size:"))
    assert told == [(5, "node_groups.gpu.max_size", "is missing: Most machines that will ever be ordered.")]


def test_problems_come_in_file_order(desk: Desk) -> None:
    """So that they can be mended from top to bottom."""
    text = "logging: {level: loud}\n" + GROUP.replace("max_size: 3", "max_size: x") + "claim: perhaps\n"
    assert [line for line, _, _ in desk.told(text)] == [1, 6, 8]
    assert str(desk.problems(text)[0]) == (
        f'{desk.path}:1: logging.level: must be debug, info, warning, error or critical, is "loud"'
    )


def test_all_problems_are_in_the_error_itself(desk: Desk) -> None:
    """The exception carries them for whoever prints them."""
    text = GROUP.replace("max_size: 3", "max_size: x") + "claim: perhaps\n"
    problems = desk.problems(text)
    assert [plain(problem)[1] for problem in problems] == ["node_groups.gpu.max_size", "claim"]
