"""Endpoints of volumes."""

from collections.abc import Iterable, Mapping

from app.simulator.api_instances import id_answer
from app.simulator.catalogue_data import LOCATIONS
from app.simulator.errors import conflict, forbidden, invalid, not_found
from app.simulator.orders import read_ids, read_tag, read_tags
from app.simulator.records import Status, Tag, VolumeRecord
from app.simulator.steer import Steer
from app.simulator.views import tag_documents
from app.simulator.volumes import check_volume_type
from app.simulator.wire import Request, Response
from app.simulator.world import World

_MAX_TAGS = 10


class VolumeEndpoints:
    """/volumes and what hangs below."""

    def __init__(self, world: World) -> None:
        self._world = world

    def listing(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """Everything outside the trash, or of one status."""
        status = request.first("status") or None
        return self._render(
            volume
            for volume in self._world.state.volumes.values()
            if (
                volume.status == status and not volume.gone if status else volume.deleted_ms is None and not volume.gone
            )
        )

    def trash(self, _request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """What can still be restored."""
        volumes = self._world.state.volumes.values()
        return self._render(volume for volume in volumes if volume.deleted_ms is not None and not volume.gone)

    def get(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """One volume, in the trash or erased too."""
        return Response(status=200, payload=self._world.views.volume(self._world.volumes.get(values["id"])))

    def create(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """202 with the new id."""
        world, body = self._world, request.json
        if not isinstance(body, dict):
            raise invalid("Request body must be a JSON object")
        name, size, location = body.get("name"), body.get("size"), body.get("location_code")
        if not isinstance(name, str) or not name:
            raise invalid("name is required")
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise invalid("size must be a positive integer")
        if location not in {code for code, _, _ in LOCATIONS}:
            raise invalid("Invalid location code")
        kind = check_volume_type(body.get("type"))
        instance = None
        if body.get("instance_id") is not None:
            instance = world.instances.get(str(body["instance_id"]))
            if instance.status != Status.OFFLINE:
                raise forbidden("One or more of the specified instances is not shut down")
        world.volumes.check_quota(size)
        volume = world.volumes.create(
            name=name, size_gb=size, kind=kind, location=str(location), tags=self._tags(read_tags(body.get("tags")))
        )
        if instance is not None:
            world.volumes.attach(volume, instance)
        return id_answer(202, volume.id, quoted=world.config.behaviour.quoted_ids)

    def act(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """202; clones answer the array of new ids the SDK expects."""
        body = request.json
        if not isinstance(body, dict):
            raise invalid("Request body must be a JSON object")
        action, ids = body.get("action"), read_ids(body, "id")
        if not isinstance(action, str) or not ids:
            raise invalid("action and id are required")
        made = self._world.volumes.act(ids, action, body)
        return Response(status=202, payload=made, committed=True)

    def delete(self, request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """202, or 204 when it was deleted already. The wish for permanence comes in the body."""
        volume = self._world.volumes.get(values["id"])
        permanently = request.fields.get("is_permanent") is True
        done = self._world.volumes.delete_call(volume, permanently=permanently)
        return Response(status=202 if done else 204, payload=[], committed=done)

    def tag(self, request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """201 with the tag."""
        volume = self._world.volumes.get(values["id"])
        (added,) = self._tags((read_tag(request.json),))
        if any(tag.id == added.id for tag in volume.tags):
            raise conflict("The matching tag is already linked to the volume")
        if len(volume.tags) >= _MAX_TAGS:
            raise forbidden("A resource can have at most 10 tags")
        volume.tags.append(added)
        return Response(status=201, payload=tag_documents([added])[0], committed=True)

    def untag(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """204."""
        volume = self._world.volumes.get(values["id"])
        kept = [tag for tag in volume.tags if tag.id != values["tag"]]
        if len(kept) == len(volume.tags):
            raise not_found("Tag not found")
        volume.tags = kept
        return Response(status=204, committed=True)

    def _tags(self, pairs: tuple[tuple[str, str], ...]) -> list[Tag]:
        return [Tag(id=self._world.core.chance.tag_id(key, value), key=key, value=value) for key, value in pairs]

    def _render(self, volumes: Iterable[VolumeRecord]) -> Response:
        return Response(status=200, payload=[self._world.views.volume(volume) for volume in volumes])
