"""Deletes machines: few one by one, many in batches, and reads what became of each.

`PUT /instances` allows 60 requests a minute, so a large scale-down must be batched; but the API's words about a single
machine are clearer than those about many, so a small one is not. The SDK's `action` is not used because it hides that
some of a batch failed (HTTP 207) and returns nothing (SDK 1.25).
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

import requests

from app.cloud.port import Deletion, DeletionAnswer, DeletionResult
from app.cloud.verda import fields
from app.cloud.verda.outcome import concerns_access, parse_json, says_already_gone, words_say_gone
from app.cloud.verda.words import printable
from app.errors import CloudError, OutcomeUnknown, Rejected

MOST_SINGLE_REQUESTS = 20
# Guess: the API documents no longest list; this one keeps a refused batch small enough to take apart.
LARGEST_BATCH = 50


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines deleted by one request; all leave the volumes to the API, or none does, and all are equally final."""

    deletions: tuple[Deletion, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """The machines."""
        return tuple(deletion.instance_id for deletion in self.deletions)

    def body(self) -> dict[str, object]:
        """The JSON of `PUT /instances` (Verda OpenAPI).

        A null `volume_ids` sends the OS volume to the trash; an empty list would keep it with its bill, so none is ever
        sent. `delete_permanently` counts only beside a list.
        """
        volume_ids = sorted({volume for deletion in self.deletions for volume in deletion.volume_ids or ()})
        body: dict[str, object] = {"action": "delete", "id": list(self.ids), "volume_ids": volume_ids or None}
        if volume_ids and self.deletions[0].permanent:
            body["delete_permanently"] = True
        return body

    def halves(self) -> tuple["Batch", "Batch"]:
        """The batch in two."""
        middle = len(self.deletions) // 2
        return Batch(self.deletions[:middle]), Batch(self.deletions[middle:])


def batches(deletions: Iterable[Deletion]) -> list[Batch]:
    """The requests to make; a machine named twice is asked for once."""
    distinct = tuple({deletion.instance_id: deletion for deletion in deletions}.values())
    if len(distinct) <= MOST_SINGLE_REQUESTS:
        return [Batch((deletion,)) for deletion in distinct]
    kinds: dict[tuple[bool, bool], list[Deletion]] = {}
    for deletion in distinct:
        kinds.setdefault((deletion.volume_ids is None, deletion.permanent), []).append(deletion)
    return [
        Batch(tuple(alike[start : start + LARGEST_BATCH]))
        for alike in kinds.values()
        for start in range(0, len(alike), LARGEST_BATCH)
    ]


def delete(
    deletions: Sequence[Deletion], send: Callable[[Batch], Mapping[str, DeletionAnswer]]
) -> list[DeletionAnswer]:
    """Delete all and answer for each, in the order asked.

    A batch that is refused as a whole is taken apart until the culprit stands alone. Once anything was answered, a
    request that failed does not take the other answers away: its machines are answered as refused with the failure's
    code, for asking again is right whether it was executed or not.

    Raises:
        CloudError: nothing at all was answered; the first failure.
    """
    answers: dict[str, DeletionAnswer] = {}
    failures: dict[str, CloudError] = {}
    waiting = deque(batches(deletions))
    while waiting:
        batch = waiting.popleft()
        try:
            answers.update(send(batch))
        except CloudError as error:
            if not isinstance(error, Rejected) or concerns_access(error):
                failures.update(dict.fromkeys(batch.ids, error))
            elif len(batch.deletions) > 1:
                waiting.extendleft(reversed(batch.halves()))
            else:
                answers[batch.ids[0]] = _refusal(batch.ids[0], error)
    if failures and not answers:
        raise next(iter(failures.values()))
    answers |= {instance_id: _refusal(instance_id, error) for instance_id, error in failures.items()}
    return [answers[deletion.instance_id] for deletion in deletions]


def _refusal(instance_id: str, error: CloudError) -> DeletionAnswer:
    if says_already_gone(error):
        return DeletionAnswer(instance_id=instance_id, result=DeletionResult.ALREADY_GONE)
    return DeletionAnswer(
        instance_id=instance_id, result=DeletionResult.REFUSED, code=error.code, message=error.message
    )


def read_answers(batch: Batch, response: requests.Response) -> dict[str, DeletionAnswer]:
    """What a successful answer says about each machine of a batch.

    204 means that all are in the wanted state already, 202 that all were accepted, whatever its body looks like; of
    207 only the body can tell.

    Raises:
        OutcomeUnknown: 207 with a body that names none of them.
    """
    if response.status_code == HTTPStatus.NO_CONTENT:
        return {each: DeletionAnswer(instance_id=each, result=DeletionResult.ALREADY_GONE) for each in batch.ids}
    told = _per_machine(response.content)
    mixed = response.status_code == HTTPStatus.MULTI_STATUS
    if mixed and not told.keys() & set(batch.ids):
        raise OutcomeUnknown(
            "some deletions failed, but the answer does not say which", code="unreadable_answer", status=207
        )
    silent = DeletionResult.REFUSED if mixed else DeletionResult.ACCEPTED
    return {
        each: told.get(each) or DeletionAnswer(instance_id=each, result=silent, code="not_mentioned" if mixed else "")
        for each in batch.ids
    }


def _per_machine(body: bytes) -> dict[str, DeletionAnswer]:
    try:
        items = parse_json(body)
    except ValueError:
        return {}
    found: dict[str, DeletionAnswer] = {}
    for item in items if isinstance(items, list) else ():
        instance_id = fields.text(fields.inner(item, "instanceId"))
        if instance_id:
            found[instance_id] = _one_answer(instance_id, item)
    return found


def _one_answer(instance_id: str, item: Mapping[str, object]) -> DeletionAnswer:
    status = fields.count(item.get("statusCode")) or 0
    problem = item.get("error")
    words = printable(fields.text(problem) or fields.text(fields.inner(problem, "message")) or "")
    if item.get("status") != "error" and status < HTTPStatus.BAD_REQUEST:
        gone = status == HTTPStatus.NO_CONTENT
        return DeletionAnswer(
            instance_id=instance_id, result=DeletionResult.ALREADY_GONE if gone else DeletionResult.ACCEPTED
        )
    if status == HTTPStatus.NOT_FOUND or words_say_gone(words):
        return DeletionAnswer(instance_id=instance_id, result=DeletionResult.ALREADY_GONE)
    code = fields.text(fields.inner(problem, "code")) or f"http_{status}"
    return DeletionAnswer(instance_id=instance_id, result=DeletionResult.REFUSED, code=printable(code), message=words)
