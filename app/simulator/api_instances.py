"""Endpoints of instances."""

from collections.abc import Mapping

from app.simulator.core import PROJECT_USER
from app.simulator.errors import invalid, not_found
from app.simulator.instances import ActionResult
from app.simulator.orders import read_ids
from app.simulator.records import DeleteWish
from app.simulator.steer import Steer
from app.simulator.views import tag_documents
from app.simulator.wire import Request, Response, refusal, text
from app.simulator.world import World


def id_answer(status: int, new_id: str, *, quoted: bool = False) -> Response:
    """A new id as the API sends it: bare text, no quotes, no newline (Verda's Python and Go SDKs rely on it)."""
    if quoted:
        return Response(status=status, payload=new_id, committed=True)
    return text(status, new_id, committed=True)


class InstanceEndpoints:
    """GET, POST and PUT /instances and what hangs below."""

    def __init__(self, world: World) -> None:
        self._world = world

    def listing(self, request: Request, _values: Mapping[str, str], _steer: Steer) -> Response:
        """Whole project, one array, no paging."""
        world = self._world
        wanted = request.first("computeId")
        rows = world.instances.listing(request.first("status") or None, request.query.get("tag", []))
        return Response(status=200, payload=[world.views.instance(row) for row in rows if wanted in {None, row.id}])

    def get(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """One object, discontinued ones too."""
        return Response(status=200, payload=self._world.views.instance(self._world.instances.get(values["id"])))

    def create(self, request: Request, _values: Mapping[str, str], steer: Steer) -> Response:
        """202 with the new id."""
        world = self._world
        instance = world.instances.create(request.json, world.scripts, world.keys, steer)
        return id_answer(202, instance.id, quoted=world.config.behaviour.quoted_ids)

    def act(self, request: Request, _values: Mapping[str, str], steer: Steer) -> Response:
        """202 when all went well, 204 for one already so, 207 when some failed, the plain error for a single id."""
        body = request.json
        if not isinstance(body, dict):
            raise invalid("Request body must be a JSON object")
        action = body.get("action")
        if not isinstance(action, str):
            raise invalid("action is required")
        ids = read_ids(body, "id")
        volume_ids = None if body.get("volume_ids") is None else list(read_ids(body, "volume_ids"))
        wish = DeleteWish(
            volume_ids=volume_ids,
            permanently=body.get("delete_permanently") is True,
            actor=PROJECT_USER,
            leave_os_volume=steer.leave_os_volume,
        )
        results = self._world.instances.act(ids, action, wish, steer)
        if len(results) == 1:
            if results[0].error is not None:
                return refusal(results[0].error)
            if results[0].already:
                return Response(status=204)
        failed = any(result.error for result in results)
        return Response(
            status=207 if failed else 202,
            payload=[_result_document(result, action) for result in results],
            committed=any(result.error is None and not result.already for result in results),
        )

    def tag(self, request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """201 with the tag."""
        added = tag_documents(self._world.instances.tag(self._world.instances.get(values["id"]), request.json))
        return Response(status=201, payload=added if len(added) > 1 else added[0], committed=True)

    def untag(self, _request: Request, values: Mapping[str, str], _steer: Steer) -> Response:
        """204."""
        instance = self._world.instances.get(values["id"])
        kept = [tag for tag in instance.tags if tag.id != values["tag"]]
        if len(kept) == len(instance.tags):
            raise not_found("Tag not found")
        instance.tags = kept
        return Response(status=204, committed=True)


def _result_document(result: ActionResult, action: str) -> dict[str, object]:
    document: dict[str, object] = {"instanceId": result.instance_id, "action": action, "status": "success"}
    if result.error is not None:
        document |= {"status": "error", "error": result.error.message, "statusCode": result.error.status}
    return document
