"""Contract checks 19 to 22 and 29: volumes, the costliest part of the API to get wrong."""

from collections.abc import Callable

import pytest

from tests.simulator.harness import APIException, Harness, order

Make = Callable[..., Harness]

DATA = {"name": "data", "size": 100, "type": "NVMe"}


def _where(sim: Harness, volume_id: str) -> str:
    """`live`, `trash` or `gone`, by the lists of the stock SDK."""
    client = sim.client()
    if volume_id in {volume.id for volume in client.volumes.get()}:
        return "live"
    return "trash" if volume_id in {volume.id for volume in client.volumes.get_in_trash()} else "gone"


@pytest.mark.parametrize(
    ("listed", "permanently", "os_ends", "data_ends"),
    [
        (None, False, "trash", "live"),
        (None, True, "trash", "live"),
        ([], False, "live", "live"),
        ([], True, "live", "live"),
        (["os"], False, "trash", "live"),
        (["os", "data"], False, "trash", "trash"),
        (["os"], True, "gone", "live"),
        (["os", "data"], True, "gone", "gone"),
        (["data"], True, "live", "gone"),
    ],
)
def test_19_what_a_delete_does_to_volumes(
    sim: Harness,
    *,
    listed: list[str] | None,
    permanently: bool,
    os_ends: str,
    data_ends: str,
) -> None:
    """19. volume_ids null, [] or a list, times delete_permanently: the four outcomes, for OS and data volumes."""
    instance_id = sim.running(volumes=[DATA])
    client = sim.client()
    ids = {"os": client.instances.get_by_id(instance_id).os_volume_id}
    ids["data"] = next(volume.id for volume in client.volumes.get() if not volume.is_os_volume)
    chosen = None if listed is None else [str(ids[name]) for name in listed]
    client.instances.action(instance_id, "delete", volume_ids=chosen, delete_permanently=permanently)
    sim.advance(10 + 2)
    assert _where(sim, str(ids["os"])) == os_ends
    assert _where(sim, str(ids["data"])) == data_ends


def test_20_permanently_without_a_list_changes_nothing(sim: Harness) -> None:
    """20. delete_permanently=True with volume_ids=None is the same as None alone: the OS volume is in the trash."""
    instance_id = sim.running()
    client = sim.client()
    os_volume = client.instances.get_by_id(instance_id).os_volume_id
    client.instances.action(instance_id, "delete", delete_permanently=True)
    sim.advance(10)
    assert [volume.id for volume in client.volumes.get_in_trash()] == [os_volume]


@pytest.mark.parametrize(
    ("policy", "ends"),
    [(None, "live"), ("keep_detached", "live"), ("move_to_trash", "trash"), ("delete_permanently", "gone")],
)
def test_21_eviction(sim: Harness, policy: str | None, ends: str) -> None:
    """21. An evicted spot instance is off the list, discontinued by id; its OS volume goes where the order said."""
    wanted = {"name": "gpu-1-os", "size": 60} | ({"on_spot_discontinue": policy} if policy else {})
    instance_id = sim.running(is_spot=True, os_volume=wanted)
    client = sim.client()
    os_volume = str(client.instances.get_by_id(instance_id).os_volume_id)
    sim.control("POST", f"/instances/{instance_id}/evict")
    assert client.instances.get() == []
    assert client.instances.get_by_id(instance_id).status == "discontinued"
    sim.advance(2)
    assert _where(sim, os_volume) == ends
    if ends == "live":
        left = client.volumes.get_by_id(os_volume)
        assert (left.status, left.instance_id, left.name, left.size) == ("detached", None, "gpu-1-os", 60)
        assert sim.truth()["orphan_volumes"] == [os_volume]
    journal = sim.raw("GET", f"/journal/compute/{instance_id}", params={"action_code": "delete:complete"}).json()
    assert journal[0]["actor_id"] is None
    assert journal[0]["properties"] == {"delete_reason": "evicted_by_on_demand"}


def test_22_a_spot_policy_needs_a_spot_instance(sim: Harness) -> None:
    """22. on_spot_discontinue on an on-demand order is 400."""
    volume = {"name": "os", "size": 50, "on_spot_discontinue": "delete_permanently"}
    answer = sim.raw("POST", "/instances", json=order(os_volume=volume))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


def test_29_volumes_decode_strictly_and_deletes_have_a_body(sim: Harness) -> None:
    """29. The seven keys the SDK insists on are always there; DELETE reads is_permanent from its body."""
    client = sim.client()
    first = client.volumes.create("NVMe", "one", 10, location="FIN-01")
    second = client.volumes.create("NVMe", "two", 10, location="FIN-01")
    assert {"id", "status", "name", "size", "type", "is_os_volume", "created_at"} <= set(
        sim.raw("GET", "/volumes").json()[0]
    )
    client.volumes.delete_by_id(first.id, is_permanent=False)
    client.volumes.delete_by_id(second.id, is_permanent=True)
    assert (_where(sim, first.id), _where(sim, second.id)) == ("trash", "gone")
    assert client.volumes.get_by_id(second.id).status == "deleted"
    assert sim.raw("DELETE", f"/volumes/{second.id}", json={"is_permanent": True}).status_code == 204


def test_a_kept_volume_carries_its_instance_for_a_moment(sim: Harness) -> None:
    """After a delete the volume is `detaching` for 2 s and refuses to go, then it is free."""
    instance_id = sim.running()
    client = sim.client()
    volume_id = str(client.instances.get_by_id(instance_id).os_volume_id)
    client.instances.action(instance_id, "delete", volume_ids=[])
    sim.advance(10)
    left = client.volumes.get_by_id(volume_id)
    assert (left.status, left.instance_id) == ("detaching", instance_id)
    with pytest.raises(APIException) as caught:
        client.volumes.delete_by_id(volume_id)
    assert caught.value.code == "forbidden_action"
    sim.advance(2)
    client.volumes.delete_by_id(volume_id)
    assert _where(sim, volume_id) == "trash"


def test_a_stuck_volume_never_gets_free(sim: Harness) -> None:
    """The preset `volume_stuck_detaching` keeps a volume `detaching` for ever."""
    instance_id = sim.running()
    volume_id = sim.preset("volume_stuck_detaching")["done"]
    sim.raw("PUT", "/instances", json={"id": instance_id, "action": "delete", "volume_ids": []})
    sim.advance(10_000)
    assert sim.client().volumes.get_by_id(volume_id).status == "detaching"


def test_attached_volumes_move_only_while_the_instance_is_off(sim: Harness) -> None:
    """detach, delete and attach are 403 on a running instance and work on an offline one."""
    instance_id = sim.running(volumes=[DATA])
    client = sim.client()
    data = next(volume.id for volume in client.volumes.get() if not volume.is_os_volume)
    for act in (client.volumes.detach, client.volumes.delete):
        with pytest.raises(APIException) as caught:
            act(data)
        assert caught.value.code == "forbidden_action"
    client.instances.action(instance_id, "shutdown")
    sim.advance(20)
    client.volumes.detach(data)
    assert client.volumes.get_by_id(data).instance_id is None
    client.volumes.attach(data, instance_id)
    assert client.volumes.get_by_id(data).instance_id == instance_id


def test_rename_resize_clone(sim: Harness) -> None:
    """The remaining volume actions of the SDK."""
    client = sim.client()
    volume = client.volumes.create("NVMe", "one", 10, location="FIN-01")
    client.volumes.rename(volume.id, "renamed")
    client.volumes.increase_size(volume.id, 20)
    seen = client.volumes.get_by_id(volume.id)
    assert (seen.name, seen.size) == ("renamed", 20)
    with pytest.raises(APIException):
        client.volumes.increase_size(volume.id, 5)
    clone = client.volumes.clone(volume.id, name="twin")
    assert (clone.name, clone.size, clone.status) == ("twin", 20, "cloning")


def test_the_trash_is_free_restorable_and_emptied_after_96_hours(sim: Harness) -> None:
    """Nothing is charged in the trash, a restore charges the skipped time, and 96 hours end it."""
    client = sim.client()
    kept = client.volumes.create("NVMe", "kept", 730, location="FIN-01")
    lost = client.volumes.create("NVMe", "lost", 730, location="FIN-01")
    client.volumes.delete([kept.id, lost.id])
    sim.advance(36_000)
    assert sim.truth()["cost_volumes"] == 0
    sim.raw("PUT", "/volumes", json={"id": kept.id, "action": "restore"})
    # 730 GB at 0.20 dollars per GB and 730 hours is 0.20 dollars an hour: ten hours are two dollars.
    assert sim.truth()["cost_volumes"] == pytest.approx(2.0)
    sim.advance(96 * 3600 - 36_000)
    assert _where(sim, lost.id) == "gone"
    assert _where(sim, kept.id) == "live"


def test_an_os_volume_can_be_deployed_again(sim: Harness) -> None:
    """`image` may be the id of a detached OS volume in the same location, and in no other."""
    instance_id = sim.running()
    client = sim.client()
    volume_id = str(client.instances.get_by_id(instance_id).os_volume_id)
    client.instances.action(instance_id, "delete", volume_ids=[])
    sim.advance(12)
    elsewhere = sim.raw("POST", "/instances", json=order("gpu-2", image=volume_id, location_code="FIN-02"))
    assert elsewhere.status_code == 400
    again = sim.running("gpu-3", image=volume_id)
    assert client.volumes.get_by_id(volume_id).instance_id == again
    taken = sim.raw("POST", "/instances", json=order("gpu-4", image=volume_id))
    assert taken.status_code == 400


def test_the_storage_quota_counts_the_trash(make: Make) -> None:
    """With 100 GB of quota and 60 in the trash, another 50 are refused."""
    sim = make(quotas={"storage_gb": 100})
    client = sim.client()
    volume = client.volumes.create("NVMe", "one", 60, location="FIN-01")
    client.volumes.delete(volume.id)
    with pytest.raises(APIException) as caught:
        client.volumes.create("NVMe", "two", 50, location="FIN-01")
    assert caught.value.code == "forbidden_action"
    client.volumes.delete(volume.id, is_permanent=True)
    client.volumes.create("NVMe", "two", 50, location="FIN-01")


def test_hibernate_keeps_every_volume(sim: Harness) -> None:
    """The deprecated action needs an offline instance, discontinues it and leaves the bill for its volumes."""
    instance_id = sim.running()
    refused = sim.raw("PUT", "/instances", json={"id": instance_id, "action": "hibernate"})
    assert refused.status_code == 403
    sim.client().instances.action(instance_id, "shutdown")
    sim.advance(20)
    with pytest.warns(DeprecationWarning, match="Hibernate"):
        sim.client().instances.action(instance_id, "hibernate")
    sim.advance(12)
    assert len(sim.truth()["orphan_volumes"]) == 1
