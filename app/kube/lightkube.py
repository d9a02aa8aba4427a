"""The port over a real API server. Lightkube finds it and knows its credentials; the exchanges are our own.

Lightkube's client cannot delete under preconditions, asks for no bookmarks, and waits for ever on a watch whose line is
dead (docs/adr/0006).
"""

import base64
import contextlib
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.config.models import User
from lightkube.core.exceptions import ConfigError

from app.clock import Clock
from app.domain.cluster.node import Node
from app.errors import ClusterConflict, ClusterError, ClusterUnavailable, ConfigurationError, Problem
from app.kube.api import Api, Json, Limits, Unprocessable
from app.kube.port import Announcement, BootstrapToken, NodeChanges, Subject, TokenSeen
from app.kube.watch import NODES, NodeWatch
from app.kube.wire import read_expiration, read_node, read_status

_CONNECT = timedelta(seconds=5)
_SECRETS = "/api/v1/namespaces/kube-system/secrets"
_LONGEST_MESSAGE = 1024
"""Kubernetes refuses events with longer ones."""


class LightkubeCluster:
    """A Kubernetes API over HTTP."""

    def __init__(self, config: SingleConfig, clock: Clock, limits: Limits | None = None) -> None:
        """Calls nobody yet; `start` begins to follow the nodes."""
        limits = limits or Limits()
        timeout = httpx2.Timeout(limits.read.total_seconds(), connect=_CONNECT.total_seconds())
        client = Client(config, ConnectionParams(timeout=timeout, trust_env=False))
        self._api = Api(client, clock, limits)
        self.watch = NodeWatch(self._api, clock)

    def start(self) -> None:
        """Begin to follow the nodes."""
        self.watch.start()

    def nodes(self) -> Sequence[Node]:
        """All nodes as the watch tells them."""
        return self.watch.nodes()

    def node(self, name: str) -> Node | None:
        """One node. Without a resource version the API server answers from its store and not from a cache."""
        answer = self._api.get(_path(name))
        return None if answer is None else read_node(answer)

    def delete_node(self, node: Node) -> bool:
        """Delete it under the conditions that it is the node that was read, and unchanged.

        The answer is a Status once it is gone, and the node itself while finalizers hold it.
        """
        preconditions = {"uid": node.uid, "resourceVersion": node.resource_version}
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
        answer = self._api.delete(_path(node.name), options)
        return answer is None or read_status(answer) is not None

    def change_node(self, node: Node, changes: NodeChanges) -> None:
        """One JSON patch that first tests that this is the node that was read, unchanged.

        The answer to a test that fails looks like that to a change that is not allowed, so the node is looked at.
        """
        try:
            answer = self._api.patch(_path(node.name), _operations(node, changes))
        except Unprocessable:
            fresh = self.node(node.name)
            if fresh is not None and (fresh.uid, fresh.resource_version) == (node.uid, node.resource_version):
                raise
            raise ClusterConflict(f"node {node.name} has changed since it was read") from None
        if answer is None:
            raise ClusterConflict(f"node {node.name} is gone")

    def create_token(self, token: BootstrapToken) -> None:
        """A Secret as `kubeadm token create` makes it; Kubernetes itself deletes it when its time is over."""
        try:
            made = self._api.post(_SECRETS, _secret(token))
        except ClusterError as error:
            refusal = _without_secret(error, token)
        else:
            if made is not None:
                return
            refusal = ClusterUnavailable("the API server has no place for a join token")
        raise refusal  # outside of `except`, so that no traceback leads to what the server said

    def delete_token(self, token_id: str) -> None:
        """By its name."""
        self._api.delete(_token_path(token_id), {"kind": "DeleteOptions", "apiVersion": "v1"})

    def token(self, token_id: str) -> TokenSeen | None:
        """Only its end is looked at."""
        answer = self._api.get(_token_path(token_id))
        return None if answer is None else TokenSeen(expires_at=read_expiration(answer))

    def announce(self, announcement: Announcement) -> None:
        """An event of the core group, in the subject's namespace; those of nodes are in `default`, as kubelets' are."""
        with contextlib.suppress(ClusterConflict):  # it was written before
            self._api.post(f"/api/v1/namespaces/{_namespace(announcement)}/events", _event(announcement))

    def close(self) -> None:
        """Stop following, close the connections."""
        self.watch.stop()
        self._api.close()


def _namespace(announcement: Announcement) -> str:
    return announcement.subject.namespace or "default"


def _event(announcement: Announcement) -> Json:
    subject, at = announcement.subject, announcement.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    involved = {"apiVersion": subject.api_version, "kind": subject.kind, "name": subject.name}
    if subject.namespace is not None:
        involved["namespace"] = subject.namespace
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{subject.name}.verda-{announcement.key}",
            "namespace": _namespace(announcement),
        },
        "involvedObject": involved,
        "type": "Warning" if announcement.is_warning else "Normal",
        "reason": announcement.reason,
        "message": announcement.message[:_LONGEST_MESSAGE],
        "source": {"component": "verda-cloud-provider"},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }


def _operations(node: Node, changes: NodeChanges) -> Sequence[Json]:
    operations: list[Json] = [
        {"op": "test", "path": "/metadata/uid", "value": node.uid},
        {"op": "test", "path": "/metadata/resourceVersion", "value": node.resource_version},
    ]
    if changes.provider_id is not None:
        operations.append({"op": "add", "path": "/spec/providerID", "value": changes.provider_id})
    if changes.labels and not node.labels:
        operations.append({"op": "add", "path": "/metadata/labels", "value": {}})
    for key, value in changes.labels.items():
        operations.append({"op": "add", "path": f"/metadata/labels/{_escaped(key)}", "value": value})
    unwanted = [index for index, taint in enumerate(node.taints) if taint in changes.without_taints]
    # From the end, so that the places of those before stay right.
    operations.extend({"op": "remove", "path": f"/spec/taints/{index}"} for index in reversed(unwanted))
    return operations


def _secret(token: BootstrapToken) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"bootstrap-token-{token.token_id}",
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/managed-by": "verda-cloud-provider"},
        },
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "description": token.description,
            "token-id": token.token_id,
            "token-secret": token.secret,
            "expiration": token.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
            "auth-extra-groups": ",".join(token.groups),
        },
    }


def _without_secret(error: ClusterError, token: BootstrapToken) -> ClusterError:
    """The error, unless the server has repeated the secret, plainly or as it is stored."""
    told = base64.b64encode(token.secret.encode()).decode()
    if token.secret not in error.message and told not in error.message:
        return error
    return type(error)("the API server refuses the join token in words that repeat it")


def _token_path(token_id: str) -> str:
    return f"{_SECRETS}/bootstrap-token-{quote(token_id, safe='')}"


def _escaped(key: str) -> str:
    """RFC 6901."""
    return key.replace("~", "~0").replace("/", "~1")


def _path(name: str) -> str:
    return f"{NODES}/{quote(name, safe='')}"


def read_kubeconfig(path: Path | None) -> SingleConfig:
    """How to reach the cluster: from a file, or from inside with the pod's account.

    Raises:
        ConfigurationError: the file or the account is missing or makes no sense.
    """
    try:
        known = KubeConfig.from_file(path) if path is not None else KubeConfig.from_service_account()
        config = known.get()
    except Exception as error:  # whatever Lightkube and its parsers make of a file that is none
        raise ConfigurationError((_problem(path, error),)) from error
    if config is None:
        raise ConfigurationError((_problem(path, ConfigError("no context is set")),))
    return config if config.user is not None else config._replace(user=User())


def _problem(path: Path | None, error: Exception) -> Problem:
    if path is None:
        message = (
            "this process runs in no pod with a service account: give the path of a kubeconfig, "
            "or say kubernetes.enabled: false"
        )
    else:
        message = f"{path} cannot be used ({type(error).__name__}): give a kubeconfig with a current context"
    return Problem(source="configuration", line=None, path="kubernetes.kubeconfig", message=message)


def own_subject(config: SingleConfig, kubeconfig: Path | None, hostname: str) -> Subject | None:
    """The StatefulSet that this process is a pod of, None outside a cluster: pods are called `<set>-<number>`."""
    name, _, number = hostname.rpartition("-")
    if kubeconfig is not None or not name or not number.isdigit():
        return None
    return Subject(kind="StatefulSet", name=name, namespace=config.namespace, api_version="apps/v1")
