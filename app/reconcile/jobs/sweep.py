"""Delete system disks that outlived their machines: the API keeps some although their deletion was asked for."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from app.domain.cloud import RecordVolumeDeleted
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.machine import Volume
from app.domain.offering import Contract
from app.errors import CloudError
from app.log import INSTANCE, get_logger
from app.reconcile.jobs.job import Bench

OS_VOLUME_SUFFIX = "-os"
"""We name a machine's system disk after it, since nothing else leads from a detached volume back to its machine."""

GRACE = timedelta(minutes=5)
"""A deletion that was taken detaches the disk before it deletes it."""

_log = get_logger(job="sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Only detached system disks named after an instance of our log that has ended or lives on another disk.

    What a person may have kept on purpose stays: the disk of an on-demand machine that ended without our asking, as a
    hibernated one does, is reported and not deleted.
    """

    name: ClassVar[str] = "sweep"
    bench: Bench

    def run(self) -> None:
        """One look at all volumes of the project."""
        try:
            volumes = self.bench.cloud.volumes()
        except CloudError as error:
            _log.warning("volumes not listed", error=error.message, code=error.code)
            return
        now = self.bench.clock.now()
        for volume in volumes:
            owner = self._owner(volume)
            if owner is None or not (_has_outlived(owner, now) or self._is_a_twin_s(volume, owner, now)):
                continue
            if _is_ours_to_delete(owner):
                self._delete(volume, owner)
            else:
                _log.warning("disk left by a machine that we did not delete", volume_id=volume.volume_id, **_of(owner))

    def _owner(self, volume: Volume) -> Instance | None:
        is_loose = volume.is_os_volume and volume.instance_id is None and volume.status == "detached"
        if not is_loose or not volume.name.endswith(OS_VOLUME_SUFFIX):
            return None
        name = volume.name.removesuffix(OS_VOLUME_SUFFIX)
        return self.bench.books.instances.get(name) or self.bench.ledger.find_ended(name)

    def _is_a_twin_s(self, volume: Volume, owner: Instance, now: datetime) -> bool:
        """Left by a second machine of this name: the first has lived for a while, on another disk, and is alone."""
        if not owner.state.is_live or owner.created_at is None or now - owner.created_at < GRACE:
            return False
        is_alone = all(surplus.instance != owner.name for surplus in self.bench.books.cloud.surplus.values())
        return is_alone and owner.os_volume_id not in {None, volume.volume_id}

    def _delete(self, volume: Volume, owner: Instance) -> None:
        group = self.bench.books.groups.get(owner.node_group)
        permanent = group is None or group.spec.os_volume_permanent
        try:
            self.bench.cloud.delete_volume(volume.volume_id, permanent=permanent)
        except CloudError as error:
            _log.warning("disk not deleted yet", volume_id=volume.volume_id, error=error.message, **_of(owner))
            return
        done = RecordVolumeDeleted(volume_id=volume.volume_id, instance=owner.name, size_gb=volume.size_gb)
        self.bench.record(done, self.bench.cause(self.name))


def _has_outlived(owner: Instance, now: datetime) -> bool:
    return owner.ended_at is not None and owner.state.is_ended and now - owner.ended_at >= GRACE


def _is_ours_to_delete(owner: Instance) -> bool:
    """Nobody kept it: it was a second machine's, or its machine's end was asked for, or the machine was a spot one.

    A spot machine's disk was ordered to go with it. What was given back while it was believed lost counts as asked for:
    if the machine returns, it is deleted, and its instance stays lost.
    """
    was_asked_for = owner.delete_requested_at is not None or owner.state is InstanceState.CANCELLED
    return was_asked_for or owner.state.is_live or owner.contract is Contract.SPOT


def _of(owner: Instance) -> dict[str, str]:
    return {INSTANCE: owner.name}
