from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from app.cloud.port import Deletion, DeletionAnswer, DeletionResult
from app.cloud.verda import CallReport, VerdaCloud
from app.domain.machine import OsVolume
from app.domain.offering import Contract
from app.errors import CloudError, NotSent, OutcomeUnknown, Rejected, Throttled

from .conftest import MakeCloud
from .toy import INSTANCE, ORDER, OTHER, VOLUME, Handler, Reply, Toy, close, cut, error, hang, html, nothing, ok, raw

ACCEPTED, ALREADY_GONE, REFUSED = DeletionResult.ACCEPTED, DeletionResult.ALREADY_GONE, DeletionResult.REFUSED
DISK = OsVolume(name="h100-k7p2q9x4", size_gb=100)


def number(index: int) -> str:
    """An instance id."""
    return f"{index:08x}-0000-4000-8000-000000000000"


def done(*instance_ids: str) -> list[dict[str, object]]:
    """The API's answer that all went well."""
    return [{"instanceId": each, "action": "delete", "status": "success", "statusCode": 202} for each in instance_ids]


def accept(handler: Handler) -> None:
    """Accept whatever was asked for."""
    asked = handler.server.toy.seen("PUT", "/instances")[-1].body["id"]
    ok(done(*asked), 202)(handler)


def ordered(toy: Toy, cloud: VerdaCloud, **changes: Any) -> Any:
    """The body of an order."""
    toy.on("POST", "/instances", ok(INSTANCE, 202))
    cloud.create_instance(replace(ORDER, **changes))
    return toy.seen("POST", "/instances")[-1].body


def test_an_order_on_demand_says_so_twice_and_names_its_location(toy: Toy, cloud: VerdaCloud) -> None:
    """The deprecated `pricing` is not sent."""
    assert ordered(toy, cloud) == {
        "instance_type": "1H100.80S.30V",
        "image": "ubuntu-24.04",
        "hostname": "h100-k7p2q9x4",
        "description": "ca:v1",
        "location_code": "FIN-01",
        "ssh_key_ids": [],
        "is_spot": False,
        "contract": "PAY_AS_YOU_GO",
    }


def test_a_spot_order_says_so_twice(toy: Toy, cloud: VerdaCloud) -> None:
    """Nobody says which field wins if they disagree."""
    body = ordered(toy, cloud, contract=Contract.SPOT)
    assert (body["is_spot"], body["contract"]) == (True, "SPOT")


def test_everything_optional_is_sent_if_it_is_there(toy: Toy, cloud: VerdaCloud) -> None:
    """Tags are what the SDK cannot send."""
    body = ordered(
        toy,
        cloud,
        tags=(("ca-cluster", "test"), ("ca-group", "h100")),
        ssh_key_ids=("key-1", "key-2"),
        startup_script_id="script-1",
        os_volume=DISK,
    )
    assert body["tags"] == [{"key": "ca-cluster", "value": "test"}, {"key": "ca-group", "value": "h100"}]
    assert body["ssh_key_ids"] == ["key-1", "key-2"]
    assert body["startup_script_id"] == "script-1"
    assert body["os_volume"] == {"name": "h100-k7p2q9x4", "size": 100}


@pytest.mark.parametrize(("permanent", "word"), [(True, "delete_permanently"), (False, "move_to_trash")])
def test_the_disk_of_a_spot_machine_leaves_with_it(toy: Toy, cloud: VerdaCloud, word: str, *, permanent: bool) -> None:
    """The API's default keeps it, with its bill, for every eviction."""
    body = ordered(toy, cloud, contract=Contract.SPOT, os_volume=replace(DISK, permanent=permanent))
    assert body["os_volume"]["on_spot_discontinue"] == word


def wish(
    instance_id: str = INSTANCE, *, volume_ids: tuple[str, ...] | None = (VOLUME,), permanent: bool = True
) -> Deletion:
    """A deletion."""
    return Deletion(instance_id=instance_id, volume_ids=volume_ids, permanent=permanent)


@pytest.mark.parametrize(
    ("deletion", "volumes"),
    [
        (wish(), {"volume_ids": [VOLUME], "delete_permanently": True}),
        (wish(permanent=False), {"volume_ids": [VOLUME]}),
        (wish(volume_ids=None), {"volume_ids": None}),
    ],
)
def test_what_happens_to_the_volumes_is_said(
    toy: Toy, cloud: VerdaCloud, deletion: Deletion, volumes: dict[str, object]
) -> None:
    """`delete_permanently` counts only beside a list, and an empty list would keep the volumes and their bill."""
    toy.on("PUT", "/instances", accept)
    assert cloud.delete_instances([deletion]) == [DeletionAnswer(instance_id=INSTANCE, result=ACCEPTED)]
    assert toy.seen("PUT", "/instances")[0].body == {"action": "delete", "id": [INSTANCE], **volumes}


def item(status_code: int, problem: object = None, instance_id: str = INSTANCE) -> dict[str, object]:
    """A failure in the API's answer per machine."""
    return {
        "instanceId": instance_id,
        "action": "delete",
        "status": "error",
        "statusCode": status_code,
        "error": problem,
    }


PROVISIONING = "Can't discontinue a provisioning instance"
GOING = "Can't discontinue a deleting instance"
GONE = "Can't discontinue a discontinued instance"

ANSWERS: dict[str, tuple[Reply, DeletionResult, str, str]] = {
    "accepted": (ok(done(INSTANCE), 202), ACCEPTED, "", ""),
    "accepted without words": (raw(b"", 202), ACCEPTED, "", ""),
    "accepted in other words": (ok({"status": "ok"}, 202), ACCEPTED, "", ""),
    "200": (ok(done(INSTANCE)), ACCEPTED, "", ""),
    "nothing to do": (nothing, ALREADY_GONE, "", ""),
    "nothing to do, in words": (
        ok([{"instanceId": INSTANCE, "status": "success", "statusCode": 204}], 202), ALREADY_GONE, "", ""),
    "unknown": (error(404, "not_found", "Instance not found"), ALREADY_GONE, "", ""),
    "gone, old servers": (error(403, "forbidden_action", GONE), ALREADY_GONE, "", ""),
    "gone, other words": (error(400, "invalid_request", "Instance already deleted"), ALREADY_GONE, "", ""),
    "going, old servers": (error(403, "forbidden_action", GOING), ALREADY_GONE, "", ""),
    "provisioning": (error(403, "forbidden_action", PROVISIONING), REFUSED, "forbidden_action", PROVISIONING),
    "odd id": (error(400, "invalid_request", "Invalid instance id"), REFUSED, "invalid_request", "Invalid instance id"),
    "other path": (ok({"message": "no Route matched"}, 404), REFUSED, "http_404", "no Route matched"),
    "207 gone": (ok([item(404, "Instance not found")], 207), ALREADY_GONE, "", ""),
    "207 gone in words": (ok([item(403, GONE)], 207), ALREADY_GONE, "", ""),
    "207 provisioning": (ok([item(403, PROVISIONING)], 207), REFUSED, "http_403", PROVISIONING),
    "207 with an object": (
        ok([item(403, {"code": "forbidden_action", "message": PROVISIONING})], 207),
        REFUSED, "forbidden_action", PROVISIONING),
    "207 with a success": (ok(done(INSTANCE), 207), ACCEPTED, "", ""),
    "202 with a failure": (ok([item(403, PROVISIONING)], 202), REFUSED, "http_403", PROVISIONING),
    "207 that knows only the status": (
        ok([{"instanceId": INSTANCE, "statusCode": 500}, 7, {"instanceId": None}], 207), REFUSED, "http_500", ""),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "result", "code", "message"), ANSWERS.values(), ids=ANSWERS.keys())
def test_what_became_of_one_machine(
    toy: Toy, cloud: VerdaCloud, reply: Reply, result: DeletionResult, code: str, message: str
) -> None:
    """Only refusals carry words; they decide whether asking again can help."""
    toy.on("PUT", "/instances", reply)
    (answer,) = cloud.delete_instances([wish()])
    assert (answer.instance_id, answer.result, answer.code, answer.message) == (INSTANCE, result, code, message)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (html(404), OutcomeUnknown),
        (html(502), OutcomeUnknown),
        (error(500, "server_error", "Oops"), OutcomeUnknown),
        (error(503, "service_unavailable", "Later"), OutcomeUnknown),
        (raw(b"", 207), OutcomeUnknown),
        (ok([], 207), OutcomeUnknown),
        (cut(b"[", 50, 202), OutcomeUnknown),
        (close, OutcomeUnknown),
        (hang, OutcomeUnknown),
        (raw(b"Rate limit!", 429), Throttled),
        (error(403, "forbidden_action", "Insufficient scope"), Rejected),
        (error(401, "unauthorized_request", "Invalid token"), Rejected),
    ],
)
def test_a_deletion_without_an_answer(toy: Toy, make_cloud: MakeCloud, reply: Reply, outcome: type[CloudError]) -> None:
    """Nothing here says anything about the machine."""
    toy.on("PUT", "/instances", reply)
    with pytest.raises(CloudError) as raised:
        make_cloud(timeout=timedelta(seconds=0.4 if reply is hang else 5)).delete_instances([wish()])
    assert type(raised.value) is outcome


def test_no_deletion_is_no_request(toy: Toy, cloud: VerdaCloud) -> None:
    """An empty id list might mean anything."""
    assert cloud.delete_instances([]) == []
    assert toy.all_seen == []


def test_a_few_are_deleted_one_by_one_and_answered_in_the_order_asked(toy: Toy, cloud: VerdaCloud) -> None:
    """The API's words about one machine are clearer than those about many."""
    replies = [ok(done(INSTANCE), 202), error(403, "forbidden_action", PROVISIONING), error(404, "not_found", "?")]
    toy.on("PUT", "/instances", *replies)
    answers = cloud.delete_instances([wish(), wish(OTHER), wish(number(1)), wish()])
    assert [(each.instance_id, each.result) for each in answers] == [
        (INSTANCE, ACCEPTED),
        (OTHER, REFUSED),
        (number(1), ALREADY_GONE),
        (INSTANCE, ACCEPTED),
    ]
    assert [seen.body["id"] for seen in toy.seen("PUT", "/instances")] == [[INSTANCE], [OTHER], [number(1)]]


def test_one_failed_request_does_not_take_the_other_answers_away(toy: Toy, cloud: VerdaCloud) -> None:
    """What was accepted is known to be accepted."""
    toy.on("PUT", "/instances", html(502), ok(done(OTHER), 202))
    refused, accepted = cloud.delete_instances([wish(), wish(OTHER)])
    assert (refused.result, refused.code) == (REFUSED, "http_502")
    assert accepted.result is ACCEPTED


def test_if_every_request_fails_the_first_failure_is_raised(make_cloud: MakeCloud, toy: Toy) -> None:
    """An outage is not a refusal of each machine."""
    toy.on("POST", "/oauth2/token", html(502))
    with pytest.raises(NotSent):
        make_cloud().delete_instances([wish(), wish(OTHER)])
    assert toy.logins == 1


def test_many_are_deleted_in_batches_that_agree_about_their_volumes(toy: Toy, cloud: VerdaCloud) -> None:
    """One list of volumes holds for all, so who leaves them to the API must not share a request with who does not."""
    toy.on("PUT", "/instances", accept)
    wishes = [wish(number(index), volume_ids=(f"volume-{index}",)) for index in range(60)]
    wishes += [wish(number(100 + index), volume_ids=None) for index in range(3)]
    wishes += [wish(number(200), permanent=False)]
    answers = cloud.delete_instances(wishes)
    assert [each.instance_id for each in answers] == [each.instance_id for each in wishes]
    assert {each.result for each in answers} == {ACCEPTED}
    bodies = [seen.body for seen in toy.seen("PUT", "/instances")]
    assert [len(body["id"]) for body in bodies] == [50, 10, 3, 1]
    assert bodies[0]["volume_ids"] == sorted(f"volume-{index}" for index in range(50))
    assert [body.get("delete_permanently", False) for body in bodies] == [True, True, False, False]
    assert [body["volume_ids"] is None for body in bodies] == [False, False, True, False]


def test_a_batch_that_partly_failed_is_answered_machine_by_machine(toy: Toy, cloud: VerdaCloud) -> None:
    """The SDK would report success; who is not mentioned was not deleted."""
    mixed = [
        *done(*(number(index) for index in range(20))),
        item(403, PROVISIONING, number(20)),
        item(404, "", number(21)),
    ]
    toy.on("PUT", "/instances", ok(mixed, 207))
    answers = cloud.delete_instances([wish(number(index)) for index in range(23)])
    assert [each.result for each in answers] == [ACCEPTED] * 20 + [REFUSED, ALREADY_GONE, REFUSED]
    assert answers[22].code == "not_mentioned"


def test_a_batch_refused_as_a_whole_is_taken_apart(toy: Toy, cloud: VerdaCloud) -> None:
    """One bad machine must not keep 24 others alive."""

    def picky(handler: Handler) -> None:
        asked = toy.seen("PUT", "/instances")[-1].body["id"]
        bad = number(7) in asked
        (error(403, "forbidden_action", PROVISIONING) if bad else ok(done(*asked), 202))(handler)

    toy.on("PUT", "/instances", picky)
    answers = cloud.delete_instances([wish(number(index)) for index in range(25)])
    assert [each.instance_id for each in answers if each.result is REFUSED] == [number(7)]
    assert answers[7].message == PROVISIONING
    assert len(toy.seen("PUT", "/instances")) < 12


def test_all_requests_of_a_deletion_share_one_deadline(toy: Toy, make_cloud: MakeCloud) -> None:
    """No call of the port waits longer than one deadline."""
    reports: list[CallReport] = []
    toy.on("PUT", "/instances", ok(done(INSTANCE), 202), hang)
    cloud = make_cloud(timeout=timedelta(seconds=0.4), observer=reports.append)
    started = cloud._clock.monotonic()
    answers = cloud.delete_instances([wish(), wish(OTHER), wish(number(1))])
    assert cloud._clock.monotonic() - started < 2
    assert [(each.result, each.code) for each in answers] == [
        (ACCEPTED, ""),
        (REFUSED, "timeout"),
        (REFUSED, "deadline"),
    ]
    assert [each.operation for each in reports] == ["delete_instances"] * 3


@pytest.mark.parametrize("permanent", [True, False])
def test_a_volume_is_deleted(toy: Toy, cloud: VerdaCloud, *, permanent: bool) -> None:
    """By id, with the choice in the body."""
    toy.on("DELETE", f"/volumes/{VOLUME}", raw(b"", 202))
    cloud.delete_volume(VOLUME, permanent=permanent)
    assert toy.seen("DELETE", f"/volumes/{VOLUME}")[0].body == {"is_permanent": permanent}


@pytest.mark.parametrize(
    "reply",
    [
        error(404, "not_found", "Volume not found"),
        nothing,
    ],
)
def test_a_volume_that_is_gone_is_fine(toy: Toy, cloud: VerdaCloud, reply: Reply) -> None:
    """The wish is fulfilled."""
    toy.on("DELETE", f"/volumes/{VOLUME}", reply)
    cloud.delete_volume(VOLUME, permanent=True)


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [(error(403, "forbidden_action", "Volume is attached"), Rejected), (html(404), OutcomeUnknown)],
)
def test_a_volume_that_is_not_deleted_is_an_error(
    toy: Toy, cloud: VerdaCloud, reply: Reply, outcome: type[CloudError]
) -> None:
    """It is still being paid for."""
    toy.on("DELETE", f"/volumes/{VOLUME}", reply)
    with pytest.raises(CloudError) as raised:
        cloud.delete_volume(VOLUME, permanent=True)
    assert type(raised.value) is outcome
