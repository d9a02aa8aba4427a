"""A group whose orders cannot be had as they are configured."""

from app.domain.instance.commands import AttemptCreate
from app.domain.instance.events import CreateFailed, ErrorClass, FailureCode
from app.domain.nodegroup.commands import PauseNodeGroup, ResumeNodeGroup
from app.domain.nodegroup.events import NodeGroupClosed, NodeGroupResumed

from .facts import H100, B, attempted, configured, wanted
from .orders import rejected, submitting

WRONG_IMAGE = rejected(400, "invalid_request", "Operating system is not valid for this instance type")
WORDS = "Operating system is not valid for this instance type; choose an image that the instance type supports"
ATTEMPT_B = AttemptCreate(instance=B)
closed = submitting.given(WRONG_IMAGE)


def test_the_first_refusal_closes_the_group() -> None:
    """F22: with the reason, once."""
    outcome = submitting.when(WRONG_IMAGE)
    assert outcome.events[1] == NodeGroupClosed(node_group="h100", code=FailureCode.IMAGE_NOT_SUPPORTED, message=WORDS)
    assert outcome.after.books.groups["h100"].closed is not None


def test_no_order_is_sent_for_a_closed_group() -> None:
    """F22: no other sites are tried, not even by a later wish; the autoscaler reads why."""
    closed.given(wanted(B)).when(ATTEMPT_B).then(
        CreateFailed(
            instance=B,
            node_group="h100",
            error_class=ErrorClass.OTHER,
            code=FailureCode.IMAGE_NOT_SUPPORTED,
            message=WORDS,
        )
    )


def test_new_settings_open_it() -> None:
    """F22: until the configuration changes, and no longer."""
    mended = configured(H100.model_copy(update={"image": "ubuntu-24.04-cuda-12.8-open-docker"}))
    story = closed.given(mended, wanted(B))
    assert story.books.groups["h100"].closed is None
    assert isinstance(story.when(ATTEMPT_B).events[0], type(attempted(B)))


def test_an_operator_opens_it() -> None:
    """Verda may have learned to install the image meanwhile."""
    story = closed.when(ResumeNodeGroup(node_group="h100", operator="ann", reason="image added")).then(
        NodeGroupResumed(node_group="h100", operator="ann", reason="image added")
    )
    assert story.books.groups["h100"].closed is None


def test_pausing_does_not_open_it() -> None:
    """They are two things."""
    story = closed.given(PauseNodeGroup(node_group="h100", operator="ann", reason="looking"))
    assert story.books.groups["h100"].closed is not None
