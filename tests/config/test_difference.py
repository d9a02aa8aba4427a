"""What two configurations differ in."""

from app.config.difference import differences

from .harness import GROUP, Desk

OTHER_GROUP = GROUP.removeprefix("node_groups:\n").replace("gpu", "cpu")


def told(desk: Desk, before: str, after: str) -> list[str]:
    """The differences in words."""
    return [str(change) for change in differences(desk.load(before).config, desk.load(after).config)]


def test_the_same_in_other_words_is_no_difference(desk: Desk) -> None:
    """Defaults, order and comments do not count."""
    assert told(desk, GROUP, "# a comment\nclaim: manual\n" + GROUP) == []


def test_each_key_is_told_with_both_values(desk: Desk) -> None:
    """Durations and lists as they are written in the file."""
    after = GROUP.replace("max_size: 3", "max_size: 5") + "    labels: {a: b}\n    provision_timeout: 90m\n"
    assert told(desk, GROUP, after + "max_hourly_cost: 12.5\n") == [
        "max_hourly_cost: not set -> 12.5",
        "node_groups.gpu.max_size: 3 -> 5",
        "node_groups.gpu.labels.a: not set -> b",
        "node_groups.gpu.provision_timeout: 30m -> 1h30m",
    ]


def test_a_group_that_comes_or_goes_is_one_difference(desk: Desk) -> None:
    """Not one for each of its keys."""
    assert told(desk, GROUP, GROUP + OTHER_GROUP) == ["node_groups.cpu: not set -> set"]
    assert told(desk, GROUP + OTHER_GROUP, OTHER_GROUP.join(["node_groups:\n", ""])) == [
        "node_groups.gpu: set -> not set"
    ]


def test_a_secret_that_changed_is_told_without_its_value(desk: Desk) -> None:
    """That it changed is worth knowing, what it is is nobody's business."""
    account = "verda: {client_id: me, client_secret: %s}\n"
    assert told(desk, GROUP + account % "first-one", GROUP + account % "second-one") == [
        "verda.client_secret: (secret) -> (secret)"
    ]
