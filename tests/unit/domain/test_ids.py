import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.ids import Mark, ProviderIdTemplate, instance_name, is_instance_name, node_key

UUID = "1a1a1a1a-0000-4000-8000-000000000001"
NAME = "gpu-7k2m4q9x"
TEN_KB = "a" * 10_240


# --- what a node claims to be


@pytest.mark.parametrize(
    ("provider_id", "node_name", "key"),
    [
        # F07: nodes of other providers in a hybrid cluster, and rubbish
        ("", "", None),
        ("robot://123", NAME, None),
        ("k3s://gpu-7k2m4q9x", NAME, None),
        ("aws:///eu-1a/i-0", NAME, None),
        ("://gpu-7k2m4q9x", NAME, None),
        ("verda://", "", None),
        ("verda:///x/y", "control-plane-1", "y"),
        (TEN_KB, NAME, None),
        (f"verda://{TEN_KB}", NAME, None),
        ("", TEN_KB, None),
        ("\x00\x1b\x7f", "node", "\x00\x1b\x7f"),
        ("verda://\x00\x1b\x7f", "node", "\x00\x1b\x7f"),
        # F08: another spelling of the same machine
        ("verda:///gpu-7k2m4q9x", NAME, NAME),
        ("VERDA://GPU-7K2M4Q9X", NAME, NAME),
        (f"datacrunch://{UUID}", NAME, UUID),
        (f"datacrunch://{UUID.upper()}", NAME, UUID),
        ("verdacloud://fin-01/gpu-7k2m4q9x", NAME, NAME),
        ("verda://gpu-7k2m4q9x", NAME, NAME),
        # F45: the kubelet registered with nothing, or with nothing behind the scheme
        ("verda://", NAME, NAME),
        ("", NAME, NAME),
        ("", "GPU-7K2M4Q9X", NAME),
        # F04: the autoscaler's stand-in for a machine that never registered carries its id as its name
        ("verda://gpu-7k2m4q9x", "verda://gpu-7k2m4q9x", NAME),
        ("", "verda://gpu-7k2m4q9x", NAME),
        ("verda://pending/gpu-7k2m4q9x", "verda://pending/gpu-7k2m4q9x", NAME),
        (NAME, NAME, NAME),
    ],
)
def test_a_node_claims_to_be(provider_id: str, node_name: str, key: str | None) -> None:
    """The provider id decides; the name counts only where it says nothing."""
    assert node_key(provider_id, node_name) == key


@pytest.mark.parametrize(
    ("template", "provider_id", "key"),
    [
        ("k3s://{hostname}", "k3s://gpu-7k2m4q9x", NAME),
        ("k3s://{hostname}", "K3S:///GPU-7K2M4Q9X", NAME),
        ("k3s://{hostname}", "verda://gpu-7k2m4q9x", None),
        ("k3s://{hostname}", "k3s://", None),
        ("k3s://{hostname}", f"k3s://{TEN_KB}", None),
        ("verda://{instance_id}", f"verda://{UUID}", UUID),
        ("verda://{instance_id}", f"verda://pending/{NAME}", None),
        ("x://{location}/{group}/{hostname}.internal", f"x://FIN-01/gpu/{NAME}.internal", NAME),
        ("x://{location}/{group}/{hostname}.internal", f"x://FIN-01/gpu/{NAME}-internal", None),
        ("x://{hostname}/{instance_id}", f"x://{NAME}/{UUID}", NAME),
        ("x://{hostname}/{hostname}", f"x://{NAME}/{NAME}", NAME),
        ("x://{hostname}/{hostname}", f"x://{NAME}/other", None),
    ],
)
def test_a_provider_id_is_read_as_the_template_spells_it(template: str, provider_id: str, key: str | None) -> None:
    """Operators whose distribution sets provider ids of its own configure that form, scheme and all."""
    assert ProviderIdTemplate(template).key(provider_id) == key


def test_the_provider_id_decides_even_if_the_name_is_ours() -> None:
    """A foreign node that happens to be called like one of ours is foreign."""
    assert node_key("aws:///eu-1a/i-0", NAME) is None
    assert node_key(f"verda://{UUID}", NAME) == UUID


@settings(max_examples=200)
@given(st.text(max_size=600), st.text(max_size=600))
def test_no_node_whatsoever_is_an_error(provider_id: str, node_name: str) -> None:
    """F07: an error for one odd node stops the autoscaler's loop."""
    key = node_key(provider_id, node_name)
    assert key is None or key == key.lower() != ""


# --- provider ids


@pytest.mark.parametrize(
    ("template", "provider_id"),
    [
        ("verda://{hostname}", "verda://gpu-7k2m4q9x"),
        ("verda://{group}/{hostname}", "verda://gpu/gpu-7k2m4q9x"),
        ("verda://{location}/{hostname}", "verda://FIN-01/gpu-7k2m4q9x"),
        ("verda://{instance_id}", f"verda://{UUID}"),
        ("datacrunch://{instance_id}", f"datacrunch://{UUID}"),
        ("verda://{hostname}/{hostname}", "verda://gpu-7k2m4q9x/gpu-7k2m4q9x"),
        ("verda://fixed", "verda://fixed"),
    ],
)
def test_every_placeholder_is_filled_in(template: str, provider_id: str) -> None:
    """Exactly as the kubelet is told to spell it."""
    made = ProviderIdTemplate(template).provider_id(name=NAME, group="gpu", location="FIN-01", instance_id=UUID)
    assert made == provider_id


@pytest.mark.parametrize("template", ["verda://{instance_id}", "verda://{location}/{hostname}", "verda://{typo}"])
def test_an_id_that_is_not_complete_yet_is_provisional_and_of_its_own(template: str) -> None:
    """The slot is listed from the start and must not share an id with another."""
    assert ProviderIdTemplate(template).provider_id(name=NAME, group="gpu") == "verda://pending/gpu-7k2m4q9x"


def test_values_are_never_read_as_placeholders() -> None:
    """A name is a name."""
    made = ProviderIdTemplate("verda://{group}/{hostname}").provider_id(name="{group}", group="{hostname}")
    assert made == "verda://{hostname}/{group}"


@pytest.mark.parametrize("template", ["verda://{hostname}", "verda://{location}/{hostname}", "datacrunch://{hostname}"])
def test_what_a_template_makes_leads_back_to_the_instance(template: str) -> None:
    """The join between node and instance works in both directions."""
    made = ProviderIdTemplate(template).provider_id(name=NAME, group="gpu", location="FIN-01")
    assert node_key(made, "whatever") == NAME


# --- names


def test_a_name_is_the_group_and_eight_characters() -> None:
    """Host name and node name in one."""
    assert instance_name("gpu-a100", "7k2m4q9x") == "gpu-a100-7k2m4q9x"


@pytest.mark.parametrize(
    ("hostname", "group", "answer"),
    [
        ("gpu-7k2m4q9x", "gpu", "yes"),
        ("gpu-a100-abcdefgh", "gpu-a100", "yes"),
        ("gpu-a100-abcdefgh", "gpu", "no"),
        ("gpu-abcdefgh", "gpu-a100", "no"),
        ("gpu-abcdefg", "gpu", "no"),
        ("gpu-abcdefghi", "gpu", "no"),
        ("gpu-ABCDEFGH", "gpu", "no"),
        ("GPU-abcdefgh", "GPU", "no"),
        ("-abcdefgh", "", "no"),
        ("abcdefgh", "", "no"),
        ("gpu.a-abcdefgh", "gpu.a", "no"),
        ("gpu--abcdefgh", "gpu-", "no"),
        ("", "", "no"),
    ],
)
def test_a_name_of_ours_has_exactly_that_form(hostname: str, group: str, answer: str) -> None:
    """F13: not the prefix decides but the whole name."""
    assert is_instance_name(hostname, group) is (answer == "yes")


# --- marks

MARK = Mark(cluster="c1", installation="inst1", group="gpu")


def test_a_mark_may_say_which_call_wanted_the_machine() -> None:
    """For people who look at the cloud's console; what is no single word would spoil the mark and is left out."""
    assert MARK.text("k9x2") == "ca:v1 cluster=c1 installation=inst1 group=gpu request=k9x2"
    assert Mark.parse(MARK.text("k9x2")) == MARK
    assert MARK.text("group=other") == MARK.text("two words") == MARK.text("") == MARK.text()


def test_a_mark_reads_back_as_it_was_written() -> None:
    """And the tags say the same."""
    assert MARK.text() == "ca:v1 cluster=c1 installation=inst1 group=gpu"
    assert Mark.parse(MARK.text()) == MARK
    assert MARK.tags() == (("ca-cluster", "c1"), ("ca-installation", "inst1"), ("ca-group", "gpu"))


@pytest.mark.parametrize(
    "description",
    [
        "ca:v1 cluster=c1 installation=inst1 group=gpu intent=42",
        "  ca:v1   group=gpu\tinstallation=inst1\ncluster=c1  ",
        "ca:v1 cluster=c1 installation=inst1 group=gpu do not delete, ask Ann",
    ],
)
def test_more_words_behind_the_mark_do_no_harm(description: str) -> None:
    """A later version may add some, and people write notes."""
    assert Mark.parse(description) == MARK


@pytest.mark.parametrize(
    "description",
    [
        "",
        "web server",
        "ca:v1",
        "ca:v10 cluster=c1 installation=inst1 group=gpu",
        "CA:V1 cluster=c1 installation=inst1 group=gpu",
        "note: ca:v1 cluster=c1 installation=inst1 group=gpu",
        "ca:v1 cluster=c1 installation=inst1",
        "ca:v1 cluster= installation=inst1 group=gpu",
        "ca:v1 cluster=c1 installation=inst1 group=gpu;rm",
        "ca:v1 cluster=c1, installation=inst1, group=gpu,",
        "ca:v1 cluster=c=1 installation=inst1 group=gpu",
    ],
)
def test_anything_else_is_no_mark(description: str) -> None:
    """What is not exactly ours is not ours."""
    assert Mark.parse(description) is None


def test_c1_never_matches_c10() -> None:
    """F78: names are compared whole, in both directions."""
    ten = Mark.parse("ca:v1 cluster=c10 installation=inst10 group=gpu")
    assert ten is not None
    assert (ten.cluster, ten.installation) == ("c10", "inst10")
    assert ten.cluster != MARK.cluster


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_no_description_is_an_error(description: str) -> None:
    """Humans write anything."""
    assert Mark.parse(description) is None
