"""The adapter against an API server that speaks real JSON over a real socket, and misbehaves on order."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User

from app.clock import FakeClock, SystemClock
from app.domain.cluster.node import NodeTaint
from app.errors import (
    ClusterConflict,
    ClusterDown,
    ClusterError,
    ClusterForbidden,
    ClusterRefused,
    ClusterUnavailable,
    ConfigurationError,
)
from app.kube.api import Expired, Limits, Unprocessable
from app.kube.lightkube import LightkubeCluster, own_subject, read_kubeconfig
from app.kube.port import Announcement, NodeChanges, Subject

from .apiserver import ApiServer, node_json
from .conftest import TOKEN

NIGHT = datetime(2026, 1, 5, tzinfo=UTC)


def wait(cluster: LightkubeCluster, condition: Callable[[], bool]) -> None:
    """Wait until the picture satisfies a condition; every change of the picture is looked at."""
    watch = cluster.watch
    with watch._changed:
        assert watch._changed.wait_for(condition, 60)


def names(cluster: LightkubeCluster) -> set[str]:
    """Of the nodes of the picture; none while there is no picture."""
    try:
        return {node.name for node in cluster.nodes()}
    except ClusterError:
        return set()


def trouble(cluster: LightkubeCluster) -> ClusterError | None:
    """What the picture suffers from."""
    try:
        cluster.nodes()
    except ClusterError as error:
        return error
    return None


# --- one node


def test_a_node_is_read_with_everything_that_matters(api: ApiServer, cluster: LightkubeCluster) -> None:
    """The JSON is a kubelet's own."""
    taints = [{"key": "gpu", "value": "true", "effect": "NoSchedule"}, {"key": "x", "effect": "NoExecute"}]
    value = node_json("gpu-a", "verda://gpu-a", ready="Unknown", since="2026-01-05T07:08:09Z", spec={"taints": taints})
    api.put(value)
    node = cluster.node("gpu-a")
    assert node is not None
    assert (node.name, node.uid, node.resource_version) == ("gpu-a", "uid-101", "101")
    assert (node.provider_id, node.ready, node.boot_id) == ("verda://gpu-a", False, "b007")
    assert node.created_at == NIGHT
    assert node.changed_at == NIGHT + timedelta(hours=7, minutes=8, seconds=9)
    assert node.labels == {"kubernetes.io/hostname": "gpu-a"}
    assert node.taints == (
        NodeTaint(key="gpu", value="true", effect="NoSchedule"),
        NodeTaint(key="x", effect="NoExecute"),
    )
    assert node.capacity == {"cpu": "32", "memory": "180388212Ki", "pods": "110", "nvidia.com/gpu": "1"}
    assert node.allocatable["cpu"] == "31850m"
    assert node.addresses == ("10.0.0.7", "gpu-a")
    assert api.authorizations == [f"Bearer {TOKEN}"]


def test_a_node_just_registered_has_little_in_it(api: ApiServer, cluster: LightkubeCluster) -> None:
    """No spec, no status: not ready since nobody knows when, and no provider id."""
    bare = node_json("gpu-a")
    api.put({"kind": "Node", "apiVersion": "v1", "metadata": bare["metadata"]})
    node = cluster.node("gpu-a")
    assert node is not None
    assert (node.provider_id, node.ready, node.changed_at) == ("", False, None)
    assert node.silent_since == NIGHT


def test_a_node_that_is_not_there_is_none(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Only by the API's own word."""
    assert cluster.node("gpu-a") is None
    api.refusals["get"] = (404, "")
    with pytest.raises(ClusterUnavailable, match=r"answers 404: not in the API's own words"):
        cluster.node("gpu-a")


def test_a_name_cannot_lead_elsewhere(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Names come from the API, and still no name may become another path."""
    assert cluster.node("../namespaces/kube-system?x=1#y") is None
    ((_, path, _),) = api.requests
    assert path == "/api/v1/nodes/..%2Fnamespaces%2Fkube-system%3Fx%3D1%23y"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ClusterForbidden), (403, ClusterForbidden), (409, ClusterConflict)]
    + [(code, ClusterRefused) for code in (400, 402, 405, 406, 413, 418, 422, 451)]
    + [(code, ClusterUnavailable) for code in (408, 410, 500, 502, 503, 504, 302)]
    + [(429, ClusterDown)],
)
def test_refusals_by_status(api: ApiServer, cluster: LightkubeCluster, status: int, kind: type[ClusterError]) -> None:
    """Refusals and conflicts are proven, everything else may have been executed. The API's words are kept."""
    api.refusals["get"] = (status, "because I say so")
    with pytest.raises(ClusterError, match="because I say so") as caught:
        cluster.node("gpu-a")
    assert type(caught.value) in {kind, Expired, Unprocessable}
    assert isinstance(caught.value, kind)
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("status", [400, 404, 405, 422, 451])
def test_a_proxys_refusal_proves_nothing(api: ApiServer, cluster: LightkubeCluster, status: int) -> None:
    """It is not in the API's own words."""
    api.refusals["get"] = (status, "")
    with pytest.raises(ClusterError) as caught:
        cluster.node("gpu-a")
    assert type(caught.value) is ClusterUnavailable


def test_who_wishes_that_we_wait_is_asked_nothing_else(api: ApiServer, cluster: LightkubeCluster) -> None:
    """With a 503 as with a 429."""
    api.refusals["get"] = (503, "starting")
    api.retry_after = "3"
    with pytest.raises(ClusterDown) as caught:
        cluster.node("gpu-a")
    assert caught.value.retry_after == timedelta(seconds=3)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b"{}", b'{"metadata": {"name": "gpu-a"}}', b"\xff"])
def test_what_cannot_be_read_is_no_node(api: ApiServer, cluster: LightkubeCluster, body: bytes) -> None:
    """A proxy's page with status 200 proves nothing."""
    api.garbage["get"] = body
    with pytest.raises(ClusterUnavailable):
        cluster.node("gpu-a")


def test_a_server_that_is_too_slow_is_given_up(api: ApiServer) -> None:
    """Nobody waits without end."""
    config = KubeConfig.from_one(cluster=Cluster(server=api.url, insecure=True), user=User()).get()
    assert config is not None
    limits = Limits(read=timedelta(milliseconds=50))
    slow = LightkubeCluster(config, SystemClock(), limits)
    api.hold.clear()
    with pytest.raises(ClusterDown, match="too slow: GET /api/v1/nodes/gpu-a"):
        slow.node("gpu-a")
    api.hold.set()
    slow.close()


def test_a_server_that_is_not_there(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Refused connections, and none after the end."""
    api.stop()
    with pytest.raises(ClusterDown, match="cannot be reached: ConnectError"):
        cluster.node("gpu-a")
    cluster.close()
    with pytest.raises(ClusterUnavailable):
        cluster.node("gpu-a")


# --- deletion


def test_exactly_what_was_read_is_deleted(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Under the conditions of uid and version; a second time is fine."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    assert cluster.delete_node(node)
    assert api.names() == []
    assert cluster.delete_node(node)
    assert api.bodies[0] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "uid-101", "resourceVersion": "101"},
    }


def test_a_node_that_a_finalizer_holds_is_not_gone_yet(api: ApiServer, cluster: LightkubeCluster) -> None:
    """k3s and RKE2 have one on every node: the answer is 200 and the node, which stays until the finalizer is off."""
    held = node_json("gpu-a")
    held["metadata"]["finalizers"] = ["wrangler.cattle.io/node"]
    api.put(held)
    node = cluster.node("gpu-a")
    assert node is not None
    assert (node.deleting_since, node.finalizers) == (None, ("wrangler.cattle.io/node",))
    assert not cluster.delete_node(node)
    node = cluster.node("gpu-a")
    assert node is not None
    assert node.deleting_since == NIGHT
    assert api.names() == ["gpu-a"]


def test_what_is_no_word_of_the_apis_proves_no_deletion(api: ApiServer, cluster: LightkubeCluster) -> None:
    """A 200 without anything in it: the next look decides."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    api.garbage["delete"] = b"{}"
    assert not cluster.delete_node(node)


def test_what_has_changed_is_not_deleted(api: ApiServer, cluster: LightkubeCluster) -> None:
    """A kubelet came back between the look and the deletion."""
    api.put(node_json("gpu-a", ready="Unknown"))
    node = cluster.node("gpu-a")
    assert node is not None
    api.put(node_json("gpu-a"))
    with pytest.raises(ClusterConflict, match="resourceVersion in the precondition"):
        cluster.delete_node(node)
    assert api.names() == ["gpu-a"]


def test_another_node_of_the_same_name_is_not_deleted(api: ApiServer, cluster: LightkubeCluster) -> None:
    """F44."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    api.drop("gpu-a")
    api.put(node_json("gpu-a"))
    with pytest.raises(ClusterConflict, match="uid in the precondition"):
        cluster.delete_node(node)
    assert api.names() == ["gpu-a"]


def test_a_deletion_that_is_not_granted(api: ApiServer, cluster: LightkubeCluster) -> None:
    """The API's own words name the account and the verb that is missing."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    words = 'nodes "gpu-a" is forbidden: User "system:serviceaccount:kube-system:verda" cannot delete resource "nodes"'
    api.refusals["delete"] = (403, words)
    with pytest.raises(ClusterForbidden, match=r'cannot delete resource "nodes"'):
        cluster.delete_node(node)


# --- change


def test_a_node_is_given_its_provider_id_labels_and_loses_taints(api: ApiServer, cluster: LightkubeCluster) -> None:
    """In one patch; taints that others put there keep their place, and what they hold beside key and effect."""
    added = "2026-01-05T00:00:01Z"
    taints = [
        {"key": "verda.com/starting", "effect": "NoSchedule"},
        {"key": "other", "value": "x", "effect": "NoExecute", "timeAdded": added},
        {"key": "verda.com/starting", "effect": "NoExecute"},
    ]
    api.put(node_json("gpu-a", spec={"taints": taints}))
    node = cluster.node("gpu-a")
    assert node is not None
    starting = tuple(taint for taint in node.taints if taint.key == "verda.com/starting")
    labels = {"node-role.kubernetes.io/gpu": "", "a~b": "c"}
    cluster.change_node(node, NodeChanges(provider_id="verda://gpu-a", labels=labels, without_taints=starting))
    changed = api.object("gpu-a")[1]
    assert changed["spec"]["providerID"] == "verda://gpu-a"
    assert changed["spec"]["taints"] == [taints[1]]
    assert changed["metadata"]["labels"] == {"kubernetes.io/hostname": "gpu-a", **labels}


def test_labels_are_put_where_there_are_none(api: ApiServer, cluster: LightkubeCluster) -> None:
    """A JSON patch cannot add to what is not there."""
    bare = node_json("gpu-a")
    del bare["metadata"]["labels"]
    api.put(bare)
    node = cluster.node("gpu-a")
    assert node is not None
    cluster.change_node(node, NodeChanges(labels={"a": "b"}))
    assert api.object("gpu-a")[1]["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("why", ["changed", "another", "gone"])
def test_a_node_that_is_not_the_one_that_was_read_is_not_changed(
    api: ApiServer, cluster: LightkubeCluster, why: str
) -> None:
    """Another version, another node of that name, or none. The API server answers 422, as it does to a bad value."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    if why in {"another", "gone"}:
        api.drop("gpu-a")
    if why in {"changed", "another"}:
        api.put(node_json("gpu-a"))
    before = api.names(), api.object("gpu-a")
    with pytest.raises(ClusterConflict):
        cluster.change_node(node, NodeChanges(provider_id="verda://gpu-a"))
    assert (api.names(), api.object("gpu-a")) == before


@pytest.mark.parametrize("why", ["a policy", "a provider id that is set"])
def test_a_change_that_the_unchanged_node_does_not_allow_is_no_lost_race(
    api: ApiServer, cluster: LightkubeCluster, why: str
) -> None:
    """422 both: it would be refused again, so somebody has to know. The API's words are kept."""
    api.put(node_json("gpu-a", "verda://other" if why != "a policy" else ""))
    node = cluster.node("gpu-a")
    assert node is not None
    words = "spec.providerID: Forbidden: node updates may not change it"
    if why == "a policy":
        words = "ValidatingAdmissionPolicy 'no-changes' denied request: hands off"
        api.refusals["patch"] = (422, words)
    before = api.object("gpu-a")
    with pytest.raises(ClusterRefused, match=words):
        cluster.change_node(node, NodeChanges(provider_id="verda://gpu-a"))
    assert api.object("gpu-a") == before


def test_a_deletion_that_a_policy_forbids_is_no_lost_race(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Preconditions that do not hold are a 409, always."""
    api.put(node_json("gpu-a"))
    node = cluster.node("gpu-a")
    assert node is not None
    api.refusals["delete"] = (422, "ValidatingAdmissionPolicy 'keep' denied request")
    with pytest.raises(ClusterRefused, match="'keep' denied request"):
        cluster.delete_node(node)


def test_an_event_that_makes_no_sense_to_the_cluster_is_told(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Only one that is there already is fine."""
    api.refusals["post"] = (422, "Event is invalid")
    about = Subject(kind="Node", name="gpu-a")
    one = Announcement(key="1", subject=about, reason="R", message="m", is_warning=False, at=NIGHT)
    with pytest.raises(ClusterRefused, match="is invalid"):
        cluster.announce(one)


# --- events


def test_an_event_is_written_once_where_people_look(api: ApiServer, cluster: LightkubeCluster) -> None:
    """As kubelets and controllers write them; one of a node is in the namespace `default`."""
    of_node = Announcement(
        key="17",
        subject=Subject(kind="Node", name="gpu-a"),
        reason="NodeRemoved",
        message="m" * 2000,
        is_warning=False,
        at=NIGHT + timedelta(hours=1),
    )
    us = Subject(kind="StatefulSet", name="verda-cloud-provider", namespace="kube-system", api_version="apps/v1")
    of_us = Announcement(key="18", subject=us, reason="BuyingStopped", message="gpu", is_warning=True, at=NIGHT)
    for one in (of_node, of_us, of_node):
        cluster.announce(one)
    event = api.events["default", "gpu-a.verda-17"]
    assert event["involvedObject"] == {"apiVersion": "v1", "kind": "Node", "name": "gpu-a"}
    assert (event["type"], event["reason"], len(event["message"])) == ("Normal", "NodeRemoved", 1024)
    assert event["lastTimestamp"] == event["firstTimestamp"] == "2026-01-05T01:00:00Z"
    other = api.events["kube-system", "verda-cloud-provider.verda-18"]
    assert other["involvedObject"]["apiVersion"] == "apps/v1"
    assert other["type"] == "Warning"
    assert len(api.events) == 2


def test_who_we_are_in_the_cluster() -> None:
    """A pod of a StatefulSet is called after it; outside a cluster there is no object to write events about."""
    config = KubeConfig.from_one(cluster=Cluster(server="http://x"), user=User(), namespace="kube-system").get()
    assert config is not None
    expected = Subject(kind="StatefulSet", name="verda-cp", namespace="kube-system", api_version="apps/v1")
    assert own_subject(config, None, "verda-cp-0") == expected
    assert own_subject(config, Path("kubeconfig"), "verda-cp-0") is None
    assert own_subject(config, None, "laptop") is None


# --- the picture


def test_no_picture_before_the_first_list(cluster: LightkubeCluster) -> None:
    """Nothing may be concluded from it."""
    with pytest.raises(ClusterUnavailable, match="not been listed yet"):
        cluster.nodes()


def test_the_picture_follows(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Listed once; what is added, changed and deleted later comes by the watch, from the list's version on."""
    api.put(node_json("gpu-a"))
    cluster.start()
    wait(cluster, lambda: names(cluster) == {"gpu-a"})
    api.put(node_json("gpu-b"))
    wait(cluster, lambda: names(cluster) == {"gpu-a", "gpu-b"})
    api.put(node_json("gpu-a", ready="Unknown"))
    wait(cluster, lambda: {node.name: node.ready for node in cluster.nodes()} == {"gpu-a": False, "gpu-b": True})
    api.drop("gpu-a")
    wait(cluster, lambda: names(cluster) == {"gpu-b"})
    assert api.verbs() == ["list", "watch"]
    (_, _, query) = api.requests[1]
    assert query["allowWatchBookmarks"] == ["true"]
    assert query["resourceVersion"] == ["101"]
    assert int(query["timeoutSeconds"][0]) > 0


def test_a_list_of_many_pages_is_shown_whole(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Seven nodes, two a page."""
    api.page = 2
    for number in range(7):
        api.put(node_json(f"gpu-{number}"))
    cluster.start()
    wait(cluster, lambda: bool(names(cluster)))
    assert len(names(cluster)) == 7
    assert api.verbs()[:4] == ["list"] * 4


def test_a_dropped_watch_goes_on_where_it_was(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Also when it was only bookmarks that said how far it had come. No second list."""
    api.put(node_json("gpu-a"))
    cluster.start()
    api.wait_for_watches(1)
    api.bookmark()
    wait(cluster, lambda: cluster.watch._version == "102")
    api.drop_watches()
    api.wait_for_watches(2)
    api.put(node_json("gpu-b"))
    wait(cluster, lambda: names(cluster) == {"gpu-a", "gpu-b"})
    api.drop_watches(abrupt=True)
    api.wait_for_watches(3)
    api.drop("gpu-a")
    wait(cluster, lambda: names(cluster) == {"gpu-b"})
    watches = [query["resourceVersion"] for verb, _, query in api.requests if verb == "watch"]
    assert watches[:3] == [["101"], ["102"], ["103"]]
    assert api.verbs().count("list") == 1


def test_a_version_that_is_too_old_begins_anew(api: ApiServer, cluster: LightkubeCluster) -> None:
    """410 within the watch: what was deleted meanwhile is gone from the picture, what was added is in it."""
    api.put(node_json("gpu-a"))
    cluster.start()
    api.wait_for_watches(1)
    with api.changed:
        api.drop("gpu-a")
        api.put(node_json("gpu-b"))
        api.forget()
        api.drop_watches()
    wait(cluster, lambda: names(cluster) == {"gpu-b"})
    assert api.verbs().count("list") == 2


def test_410_as_the_answer_to_a_watch_begins_anew(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Servers answer either way."""
    api.put(node_json("gpu-a"))
    api.refusals["watch"] = (410, "too old resource version")
    cluster.start()
    wait(cluster, lambda: cluster.watch.lists >= 2)
    del api.refusals["watch"]
    api.wait_for_watches(1)
    assert names(cluster) == {"gpu-a"}


@pytest.mark.parametrize(
    ("status", "kind"), [(403, ClusterForbidden), (429, ClusterUnavailable), (500, ClusterUnavailable)]
)
def test_a_list_that_is_refused_is_no_picture(
    api: ApiServer, cluster: LightkubeCluster, status: int, kind: type[ClusterError]
) -> None:
    """It says why, and comes by itself once it may."""
    api.put(node_json("gpu-a"))
    api.refusals["list"] = (status, "not today")
    cluster.start()
    wait(cluster, lambda: isinstance(trouble(cluster), kind) and "not today" in str(trouble(cluster)))
    del api.refusals["list"]
    wait(cluster, lambda: names(cluster) == {"gpu-a"})


def test_a_picture_that_cannot_be_kept_is_no_picture(api: ApiServer, cluster: LightkubeCluster) -> None:
    """The old one is not shown while the API is down: it would be an old truth, and nobody could tell."""
    api.put(node_json("gpu-a"))
    cluster.start()
    wait(cluster, lambda: names(cluster) == {"gpu-a"})
    api.refusals["watch"] = (503, "down")
    api.drop_watches()
    wait(cluster, lambda: "503: down" in str(trouble(cluster)))
    del api.refusals["watch"]
    wait(cluster, lambda: names(cluster) == {"gpu-a"})
    assert api.verbs().count("list") == 1


def test_one_node_that_cannot_be_read_spoils_the_list(api: ApiServer, cluster: LightkubeCluster) -> None:
    """Left out it would look gone."""
    api.put(node_json("gpu-a"))
    odd = node_json("gpu-b")
    api.put(odd | {"metadata": {"name": "gpu-b", "creationTimestamp": "yesterday"}})
    cluster.start()
    wait(cluster, lambda: "creationTimestamp" in str(trouble(cluster)))


def test_too_many_requests_are_asked_for_no_sooner_than_the_server_wishes(
    api: ApiServer, cluster: LightkubeCluster
) -> None:
    """`Retry-After` of a 429 counts."""
    api.retry_after = "17"
    api.refusals["list"] = (429, "slow down")
    cluster.start()
    wait(cluster, lambda: "slow down" in str(trouble(cluster)))
    assert cluster.watch._pause_s() == 17.0


def test_pauses_grow_and_end(cluster: LightkubeCluster) -> None:
    """Half a second, one, two ... thirty; none after a watch that was one."""
    pauses = []
    for failures in (0, 1, 2, 3, 7, 100):
        cluster.watch._failures = failures
        pauses.append(cluster.watch._pause_s())
    assert pauses == [0.0, 0.5, 1.0, 2.0, 30.0, 30.0]


def test_a_dead_line_is_left_and_tried_anew(api: ApiServer) -> None:
    """Nothing is heard, nothing says that it has ended. The picture stays, the list is not read again."""
    config = KubeConfig.from_one(cluster=Cluster(server=api.url, insecure=True), user=User()).get()
    assert config is not None
    cluster = LightkubeCluster(config, SystemClock(), Limits(silence=timedelta(milliseconds=50)))
    api.put(node_json("gpu-a"))
    cluster.start()
    api.wait_for_watches(3)
    assert names(cluster) == {"gpu-a"}
    assert api.verbs().count("list") == 1
    cluster.close()


def test_a_picture_whose_keeper_died_grows_stale(api: ApiServer) -> None:
    """Five minutes without a word from the thread, and it is no longer believed."""
    clock = FakeClock()
    config = KubeConfig.from_one(cluster=Cluster(server=api.url, insecure=True), user=User()).get()
    assert config is not None
    cluster = LightkubeCluster(config, clock)
    api.put(node_json("gpu-a"))
    cluster.start()
    wait(cluster, lambda: names(cluster) == {"gpu-a"})
    api.wait_for_watches(1)
    clock.advance(300)
    assert names(cluster) == {"gpu-a"}
    clock.advance(1)
    with pytest.raises(ClusterUnavailable, match="for too long"):
        cluster.nodes()
    cluster.close()


# --- finding the cluster

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
"""


def test_a_kubeconfig_without_a_user_is_enough(tmp_path: Path) -> None:
    """As for an API server behind a local proxy."""
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    assert read_kubeconfig(path).cluster.server == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "apiVersion: v1", KUBECONFIG.replace("current-context: here\n", ""), "\t", "users: 7"]
)
def test_a_kubeconfig_that_makes_no_sense_is_told_with_its_key(tmp_path: Path, text: str) -> None:
    """Field, value, remedy; nothing of the file's secrets."""
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    told = r"kubernetes\.kubeconfig: .*kubeconfig cannot be used .*: give a kube"
    with pytest.raises(ConfigurationError, match=told):
        read_kubeconfig(path)


def test_outside_a_pod_a_kubeconfig_is_needed() -> None:
    """There is no service account here."""
    with pytest.raises(ConfigurationError, match="runs in no pod with a service account: give the path"):
        read_kubeconfig(None)
