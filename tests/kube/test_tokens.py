"""F41: join tokens for one machine each, which are gone when it has joined; and the operator's own, which end."""

import base64
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from structlog.typing import EventDict

from app.domain.cluster.events import JoinTokenAttempted, JoinTokenDoubted, JoinTokenRevoked
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import FailureCode
from app.errors import ClusterConflict, ClusterError, ClusterForbidden, ClusterUnavailable
from app.kube.jobs.tokens import RevokeJoinTokens
from app.kube.lightkube import LightkubeCluster
from app.kube.port import BootstrapToken
from app.ledger.serving import remarks
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import ScriptDesk, Scripts
from app.startup.sources import SAMPLE_TOKEN, ScriptSource
from app.startup.template import ScriptError
from app.startup.tokens import standing_tokens
from tests.reconcile.house import spec
from tests.reconcile.world import NO_STOCK, Killed, refuses

from .apiserver import ApiServer
from .yard import GROUP, US, Yard

HOUR = timedelta(hours=1)
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
SOURCE = ScriptSource(template="#!/bin/sh\nkubeadm join --token {{ join_token }}\n", minted={"join_token": HOUR})


@pytest.fixture
def minting(yard: Yard) -> Callable[[], None]:
    """Has the group h100 order its machines with join tokens of their own; again after a restart."""
    yard.house.configure(
        spec(startup_script="text", startup_script_keep=timedelta(minutes=10)), yard.house.books.groups["spot"].spec
    )

    def begin() -> None:
        bench = yard.house.provision.bench
        keeper = Scripts(bench=bench, look_every=timedelta(minutes=10))
        desk = ScriptDesk(bench=bench, keeper=keeper, sources={"h100": SOURCE}, mint=yard.mint)
        yard.house.provision = Provision(
            bench=bench, executor=yard.house.executor, parallel=yard.house.parallel, desk=desk
        )

    begin()
    return begin


def in_scripts(yard: Yard) -> list[str]:
    """The tokens in the scripts at the cloud, in the order of their upload."""
    return [token for _, text in yard.house.world.texts.values() for token in TOKEN.findall(text)]


def in_cluster(yard: Yard) -> list[str]:
    """The tokens that let somebody join."""
    return [f"{token.token_id}.{token.secret}" for token in yard.cluster.tokens.values()]


def ends(yard: Yard) -> list[tuple[str, str]]:
    """How tokens ended: whose, and why."""
    return [
        (item.event.instance, str(item.event.reason))
        for item in yard.house.log
        if isinstance(item.event, JoinTokenRevoked)
    ]


def intents(yard: Yard) -> list[str]:
    """The ids of the tokens that were to be made."""
    return [item.event.token_id for item in yard.house.log if isinstance(item.event, JoinTokenAttempted)]


@pytest.mark.usefixtures("minting")
def test_every_machine_has_a_token_of_its_own_until_it_has_joined(yard: Yard) -> None:
    """In its script and in the cluster while it boots; gone with the first picture that shows its node."""
    first, second = yard.house.running(2)
    assert len(set(in_scripts(yard))) == 2
    assert in_cluster(yard) == in_scripts(yard)
    one = next(iter(yard.cluster.tokens.values()))
    assert (one.groups, one.description) == ((GROUP,), f"lets {first} join, made by verda-cloud-provider")
    assert one.expires_at - yard.house.now < HOUR
    yard.tend(3)
    assert len(in_cluster(yard)) == 2
    yard.join(second, ready=False)
    yard.tend(1)
    assert in_cluster(yard) == in_scripts(yard)[:1]
    assert ends(yard) == [(second, "joined")]
    yard.house.delete(first)
    yard.tend(1)
    assert in_cluster(yard) == []
    assert ends(yard) == [(second, "joined"), (first, "no-longer-needed")]
    assert len(yard.house.books.cluster.tokens) == 0


@pytest.mark.usefixtures("minting")
def test_a_token_ends_with_its_time(yard: Yard) -> None:
    """A machine that has not joined within the hour does not join with it any more; nobody waits for the cluster."""
    (name,) = yard.house.running()
    yard.house.clock.advance(HOUR)
    yard.tend(1)
    assert in_cluster(yard) == []
    assert ends(yard) == [(name, "expired")]


@pytest.mark.usefixtures("minting")
def test_each_attempt_to_order_has_its_own(yard: Yard) -> None:
    """The one of an order that was refused ends at once."""
    yard.house.world.on_create.append(refuses(NO_STOCK))
    (name,) = yard.house.grow()
    yard.house.provision_until_quiet()
    assert len(in_cluster(yard)) == 2
    yard.tend(1)
    assert ends(yard) == [(name, "no-longer-needed")]
    assert in_cluster(yard) == in_scripts(yard)[-1:]


@pytest.mark.parametrize("instant", ["intent", "made", "minted", "ordered"])
def test_a_kill_at_any_instant_leaves_nothing(yard: Yard, minting: Callable[[], None], instant: str) -> None:
    """After the next start every token that no script waits for is deleted by the id in its intent."""
    events = {
        "intent": "cluster.join-token-attempted",
        "made": "cluster.join-token-minted",
        "minted": "cloud.script-upload-attempted",
        "ordered": "instance.created",
    }

    def die(recorded: tuple[Recorded[Event], ...]) -> None:
        if any(item.event.type == events[instant] for item in recorded):
            raise Killed

    after = instant == "intent"
    setattr(yard.house.trap, "on_appended" if after else "on_append", die)
    yard.house.grow()
    with pytest.raises(Killed):
        yard.house.provision.run()
    assert len(in_cluster(yard)) == (0 if after else 1)
    yard.restart()
    minting()
    yard.house.ticks(40)
    yard.house.world.boot()
    yard.house.ticks(2)
    yard.tend(2)
    (instance,) = yard.house.books.members("h100").listed
    assert instance.state == "running"
    assert in_cluster(yard) == in_scripts(yard)[-1:]
    yard.join(instance.name)
    yard.tend(2)
    assert in_cluster(yard) == []
    assert len(yard.house.books.cluster.tokens) == 0


@pytest.mark.usefixtures("minting")
def test_an_answer_that_never_came_is_followed_by_a_deletion(yard: Yard) -> None:
    """The API server took the token and broke off: nothing is ordered with it, and it is deleted by its id."""
    lost: list[str] = []
    create = yard.cluster.create_token

    def break_off(token: BootstrapToken) -> None:
        create(token)
        lost.append(token.token_id)
        raise ClusterUnavailable("the line broke")

    yard.cluster.create_token = break_off  # type: ignore[method-assign] # the line, not the cluster, is what fails here
    (name,) = yard.house.grow()
    yard.house.provision.run()
    assert yard.house.state(name) == "requested"
    assert yard.house.instance(name).error_code is FailureCode.JOIN_TOKEN
    assert yard.house.world.orders == []
    yard.cluster.create_token = create  # type: ignore[method-assign] # it holds again
    yard.tend(1)
    assert ends(yard) == [(name, "interrupted")]
    assert in_cluster(yard) == []
    yard.house.ticks(2)
    assert len(in_cluster(yard)) == 1
    assert lost[0] not in yard.cluster.tokens


@pytest.mark.usefixtures("minting")
def test_what_is_not_granted_fails_the_order_with_its_reason(yard: Yard) -> None:
    """No machine is bought that could not join; the code and the remedy are in what the autoscaler shows."""
    yard.cluster.forbidden["create_token"] = ClusterForbidden("secrets is forbidden")
    (name,) = yard.house.grow()
    yard.house.provision_until_quiet()
    failed = yard.house.instance(name)
    assert (failed.state, failed.error_code) == ("failed", FailureCode.JOIN_TOKEN)
    assert failed.error_message == "secrets is forbidden; grant the provider what the component join-tokens has"
    assert yard.house.world.orders == []
    assert ends(yard) == [(name, "never-made")]


@pytest.mark.usefixtures("minting")
def test_an_id_that_is_taken_is_drawn_again(yard: Yard) -> None:
    """Somebody else's token of that id is never touched."""
    real = yard.cluster.create_token
    taken: list[str] = []

    def once(token: BootstrapToken) -> None:
        if not taken:
            taken.append(token.token_id)
            raise ClusterConflict("it exists")
        real(token)

    yard.cluster.create_token = once  # type: ignore[method-assign] # an id of thirty random bits cannot be provoked
    (name,) = yard.house.grow()
    yard.house.provision_until_quiet()
    yard.tend(1)
    assert ends(yard) == [(name, "never-made")]
    assert in_cluster(yard) == in_scripts(yard)
    assert taken[0] not in yard.cluster.tokens


@pytest.mark.usefixtures("minting")
def test_one_that_is_just_being_made_is_not_taken_for_a_left_one(yard: Yard) -> None:
    """The job runs between intent and outcome, in another thread; the machine's token survives it."""
    create = yard.cluster.create_token

    def slow(token: BootstrapToken) -> None:
        create(token)
        yard.tend(1)

    yard.cluster.create_token = slow  # type: ignore[method-assign] # the other thread's turn comes exactly here
    yard.house.grow()
    yard.house.provision_until_quiet()
    yard.tend(1)
    assert ends(yard) == []
    assert in_cluster(yard) == in_scripts(yard)


@pytest.mark.usefixtures("minting")
def test_one_that_was_finished_meanwhile_is_not_taken_for_a_left_one(yard: Yard) -> None:
    """The job saw the intent, and nobody at work: in between the outcome was written down."""
    yard.house.grow()

    def finish() -> tuple[str, ...]:
        yard.house.provision_until_quiet()
        return ()

    RevokeJoinTokens(bench=yard.bench, under_way=finish).run((), yard.bench.cause())
    assert len(in_cluster(yard)) == 1
    assert ends(yard) == []


@pytest.mark.usefixtures("minting")
def test_deletion_that_fails_is_tried_again(yard: Yard) -> None:
    """Written down only when it is done."""
    (name,) = yard.house.running()
    yard.join(name)
    yard.cluster.forbidden["delete_token"] = ClusterForbidden("cannot delete secrets")
    yard.tend(3)
    assert ends(yard) == []
    assert [reason.message for reason in yard.troubles.reasons()] == [
        "the cluster side cannot delete join tokens: cannot delete secrets; scaling goes on without it"
    ]
    yard.cluster.forbidden.clear()
    yard.tend(1)
    assert ends(yard) == [(name, "joined")]


@pytest.mark.usefixtures("minting")
def test_no_secret_is_in_the_database_or_in_the_log(yard: Yard, lines: list[EventDict]) -> None:
    """Its id is, by which a person finds it with kubectl."""
    (name,) = yard.house.running()
    yard.join(name)
    (token,) = in_scripts(yard)
    token_id, _, secret = token.partition(".")
    assert secret not in repr(next(iter(yard.cluster.tokens.values())))
    yard.tend(2)
    yard.house.close()
    with closing(sqlite3.connect(yard.house.path)) as connection:
        dump = "\n".join(connection.iterdump())
    assert secret not in dump
    assert secret not in str(lines)
    assert token_id in dump


def test_a_script_is_tried_with_a_sample_and_never_sent_with_it() -> None:
    """Without a mint there is an error, not a machine with somebody's example."""
    from tests.startup.test_templates import birth  # noqa: PLC0415 - only here

    assert SAMPLE_TOKEN in SOURCE.trial(birth()).text
    with pytest.raises(ScriptError, match="cannot have join_token: only the provider itself makes it"):
        SOURCE.script(birth())


# --- the adapter


def token(secret: str = "k7m2p9qxa2b3c4d5") -> BootstrapToken:  # noqa: S107 - made up
    """As the mint makes it."""
    return BootstrapToken(
        token_id="a2b3c4",
        secret=secret,
        description="lets h100-k7m2p9qx join",
        groups=(GROUP, "system:bootstrappers:k3s:default-node-token"),
        expires_at=datetime(2026, 1, 5, 13, 30, tzinfo=UTC),
    )


def test_a_token_is_the_secret_that_kubeadm_would_make(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Every field that Kubernetes' authenticator, its signer and its cleaner read."""
    cluster.create_token(token())
    secret = api.secrets["bootstrap-token-a2b3c4"]
    assert secret["type"] == "bootstrap.kubernetes.io/token"
    assert {key: base64.b64decode(value).decode() for key, value in secret["data"].items()} == {
        "description": "lets h100-k7m2p9qx join",
        "token-id": "a2b3c4",
        "token-secret": "k7m2p9qxa2b3c4d5",
        "expiration": "2026-01-05T13:30:00Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": f"{GROUP},system:bootstrappers:k3s:default-node-token",
    }
    seen = cluster.token("a2b3c4")
    assert seen is not None
    assert seen.expires_at == datetime(2026, 1, 5, 13, 30, tzinfo=UTC)
    with pytest.raises(ClusterConflict):
        cluster.create_token(token())
    cluster.delete_token("a2b3c4")
    cluster.delete_token("a2b3c4")
    assert cluster.token("a2b3c4") is None
    assert api.secrets == {}


@pytest.mark.parametrize(
    ("data", "expires_at"),
    [
        ({}, None),
        ({"expiration": ""}, None),
        ({"expiration": "2026-01-05T13:30:00+02:00"}, datetime(2026, 1, 5, 11, 30, tzinfo=UTC)),
        ({"expiration": "2026-01-05T13:30:00"}, datetime(2026, 1, 5, 13, 30, tzinfo=UTC)),
    ],
)
def test_the_end_of_a_token_that_others_made(
    api: ApiServer, cluster: LightkubeCluster, data: dict[str, str], expires_at: datetime | None
) -> None:
    """`kubeadm token create --ttl 0` has none, which means never."""
    api.secrets["bootstrap-token-abcdef"] = {
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    }
    seen = cluster.token("abcdef")
    assert seen is not None
    assert seen.expires_at == expires_at


@pytest.mark.parametrize("told", ["c29vbg==", "%%%"])
def test_an_end_that_makes_no_sense_is_not_repeated(api: ApiServer, cluster: LightkubeCluster, told: str) -> None:
    """It stands beside a secret."""
    api.secrets["bootstrap-token-abcdef"] = {"data": {"expiration": told}}
    with pytest.raises(ClusterUnavailable, match="the expiration of a join token cannot be read"):
        cluster.token("abcdef")


@pytest.mark.parametrize("status", [403, 409, 422, 500])
@pytest.mark.parametrize("told", ["{}", base64.b64encode(b"{}").decode()], ids=["plain", "as it is stored"])
def test_a_server_that_repeats_the_secret_is_not_quoted(
    api: ApiServer, cluster: LightkubeCluster, status: int, told: str
) -> None:
    """An admission webhook may write anything into its refusal; not even a traceback has it."""
    secret = "k7m2p9qxa2b3c4d5"
    words = told.format(secret) if told == "{}" else base64.b64encode(secret.encode()).decode()
    api.refusals["post secret"] = (status, f"admission denied: {words}")
    with pytest.raises(ClusterError) as caught:
        cluster.create_token(token(secret))
    assert caught.value.message == "the API server refuses the join token in words that repeat it"
    assert caught.value.__context__ is None
    api.refusals["post secret"] = (status, "quota exceeded")
    with pytest.raises(ClusterError, match="quota exceeded"):
        cluster.create_token(token(secret))


# --- the operator's own


@pytest.fixture
def standing(yard: Yard) -> Yard:
    """Two groups with a token in their scripts."""
    yard.standing = {"abcdef": ("h100", "spot")}
    return yard


def doubts(yard: Yard) -> list[str]:
    """What the log says of such tokens."""
    return [item.event.message for item in yard.house.log if isinstance(item.event, JoinTokenDoubted)]


def test_a_token_that_is_about_to_end_is_told_in_time(standing: Yard, lines: list[EventDict]) -> None:
    """F41. Six hours before: once in the log, at /readyz and as an event on the provider; gone when it is renewed."""
    ends_at = standing.house.now + timedelta(hours=8)
    standing.cluster.standing["abcdef"] = ends_at
    standing.tend(1)
    assert doubts(standing) == []
    standing.house.clock.advance(timedelta(hours=2, minutes=1))
    standing.tend(100)
    message = (
        f"join token abcdef in the startup script of h100, spot ends at {ends_at:%Y-%m-%d %H:%M} UTC, and no machine "
        "can join from then on: make another, with kubeadm token create, and put it where the script's value comes from"
    )
    assert doubts(standing) == [message]
    assert [one.message for one in remarks(standing.house.books) if one.code == "join-token-ends"] == [message]
    assert [line["problem"] for line in lines if line["event"] == "join token about to end"] == [message]
    announced = [(one.subject, one.reason, one.is_warning, one.message) for one in standing.cluster.announced]
    assert announced == [(US, "JoinTokenEnds", True, message)]
    standing.standing = {"fedcba": ("h100", "spot")}
    standing.cluster.standing["fedcba"] = None
    standing.house.clock.advance(300)
    standing.tend(1)
    assert remarks(standing.house.books) == ()
    assert standing.told()[-1] == "join-token-trusted"


def test_a_token_that_is_not_in_the_cluster_is_told(standing: Yard) -> None:
    """F41. Kubernetes has removed it: from now on every machine would be bought for nothing. Told once."""
    standing.tend(2)
    standing.restart()
    standing.tend(2)
    (message,) = doubts(standing)
    assert message.startswith("join token abcdef in the startup script of h100, spot is not in the cluster, so no new")
    assert [one.code for one in remarks(standing.house.books)] == ["join-token-ends"]


def test_one_that_never_ends_is_no_worry(standing: Yard) -> None:
    """`--ttl 0`."""
    standing.cluster.standing["abcdef"] = None
    standing.tend(2)
    assert doubts(standing) == []


def test_where_it_may_not_be_read_nothing_is_said(standing: Yard, lines: list[EventDict]) -> None:
    """The right is the operator's to give; what was known before stays."""
    standing.cluster.forbidden["token"] = ClusterForbidden("cannot get secrets")
    standing.tend(3)
    assert standing.troubles.reasons() == ()
    assert doubts(standing) == []
    assert [line for line in lines if line["level"] != "info"] == []
    standing.cluster.forbidden.clear()
    standing.house.clock.advance(300)
    standing.tend(1)
    assert len(doubts(standing)) == 1
    standing.cluster.forbidden["token"] = ClusterForbidden("cannot get secrets")
    standing.house.clock.advance(300)
    standing.tend(1)
    assert [one.code for one in remarks(standing.house.books)] == ["join-token-ends"]


def test_tokens_are_found_in_scripts_values() -> None:
    """Kubeadm's form, also with k3s' prefix; passwords of servers, texts and values that cannot be read are none."""

    def unreadable() -> str:
        raise ScriptError("cannot have it")

    values: dict[str, Callable[[], str]] = {
        "join_token": lambda: "abcdef.0123456789abcdef\n",
        "k3s": lambda: f"K10{'0' * 64}::fedcba.0123456789abcdef",
        "server": lambda: f"K10{'0' * 64}::server:0123456789abcdef",
        "text": lambda: "see abcdef.0123456789abcdef",
        "gone": unreadable,
    }
    sources = {
        "a": ScriptSource(template="", values=values),
        "b": ScriptSource(template="", values={"join_token": values["join_token"]}),
    }
    assert standing_tokens(sources) == {"abcdef": ("a", "b"), "fedcba": ("a",)}
