import threading
from datetime import timedelta

import pytest

from app.clock import FakeClock
from app.cloud.port import Deletion
from app.cloud.ratelimit import RateLimiter, Urgency, parse_ratelimit
from app.errors import NotSent, Throttled

from .conftest import MakeCloud
from .toy import INSTANCE, ORDER, Toy, error, instance, ok, raw

URGENT, ROUTINE = Urgency.URGENT, Urgency.ROUTINE
LIST = ("GET", "/instances")
ORDERS = ("POST", "/instances")


class Scene:
    """A limiter whose waiting only moves a clock."""

    def __init__(self, share: float = 1.0) -> None:
        self.clock = FakeClock()
        self.limiter = RateLimiter(clock=self.clock, share=share, wait=self.clock.advance)

    def ask(self, method: str, path: str, urgency: Urgency = URGENT, *, patience_s: float = 0.0) -> float:
        """Seconds waited."""
        before = self.clock.monotonic()
        self.limiter.acquire(method, path, urgency, before + patience_s)
        return self.clock.monotonic() - before

    def admitted(self, method: str, path: str, urgency: Urgency = URGENT) -> int:
        """How many requests may leave right now."""
        for number in range(10_000):
            try:
                self.ask(method, path, urgency)
            except Throttled:
                return number
        raise AssertionError("no limit")


@pytest.mark.parametrize(
    ("method", "path", "urgency", "share", "expected"),
    [
        ("POST", "/instances", URGENT, 1.0, 60),
        ("PUT", "/instances", URGENT, 1.0, 60),
        ("GET", "/instances", URGENT, 1.0, 120),
        ("GET", "/volumes", URGENT, 1.0, 120),
        ("GET", f"/instances/{INSTANCE}", URGENT, 1.0, 60),
        ("POST", "/instances", URGENT, 0.5, 30),
        ("POST", "/instances", URGENT, 0.001, 1),
        ("GET", "/instances", ROUTINE, 1.0, 108),
        ("GET", "/locations", ROUTINE, 0.001, 1),
    ],
)
def test_no_path_gets_more_than_our_share(
    method: str, path: str, urgency: Urgency, share: float, expected: int
) -> None:
    """The API counts per method and path, ids included; both lists have a larger limit."""
    assert Scene(share).admitted(method, path, urgency) == expected


def test_the_project_gets_no_more_than_our_share() -> None:
    """Its limit covers all paths together, and others have their share of it too."""
    scene = Scene(0.5)
    for number in range(250):
        scene.ask("GET", f"/instances/{number}")
    with pytest.raises(Throttled) as raised:
        scene.ask("GET", "/instances/another")
    assert raised.value.code == "rate_limit_reached"
    assert raised.value.status is None
    assert raised.value.retry_after == timedelta(seconds=60)


def test_no_sixty_seconds_hold_more_than_the_limit() -> None:
    """Wherever the server's windows begin, two bursts of ours do not fall into one."""
    scene = Scene()
    sent = []
    for _ in range(400):
        scene.ask(*ORDERS, patience_s=100)
        sent.append(scene.clock.monotonic())
        scene.clock.advance(0.3)
    assert all(later - earlier > 59.999 for earlier, later in zip(sent, sent[60:], strict=False))


def test_waiting_in_vain_is_refused_at_once() -> None:
    """It would only block a thread."""
    scene = Scene()
    scene.admitted(*ORDERS)
    before = scene.clock.monotonic()
    with pytest.raises(Throttled):
        scene.ask(*ORDERS, patience_s=59)
    assert scene.clock.monotonic() == before
    assert scene.ask(*ORDERS, patience_s=60) == 60


def test_a_full_path_does_not_stop_the_others() -> None:
    """Ten orders too many must not stop us from looking."""
    scene = Scene()
    scene.admitted(*ORDERS)
    assert scene.ask(*LIST) == 0


def test_the_last_tenth_is_kept_for_what_saves_money() -> None:
    """A list comes round again by itself, a machine that is not deleted costs."""
    scene = Scene()
    for number in range(450):
        scene.ask("GET", f"/catalogue/{number}", ROUTINE)
    with pytest.raises(Throttled):
        scene.ask(*LIST, ROUTINE)
    assert scene.ask("PUT", "/instances") == 0


def test_a_neighbour_who_used_up_the_project_is_seen_in_the_header() -> None:
    """F78: the limits belong to the project, not to its credentials."""
    scene = Scene()
    scene.limiter.heard(*LIST, '"project";r=3;t=40, "endpoint";r=100;t=40')
    with pytest.raises(Throttled) as raised:
        scene.ask(*LIST, ROUTINE)
    assert raised.value.retry_after == timedelta(seconds=40)
    assert scene.admitted("PUT", "/instances") == 3
    assert scene.ask(*LIST, ROUTINE, patience_s=40) == 40


def test_the_header_of_one_path_counts_for_that_path() -> None:
    """Its neighbours have counters of their own."""
    scene = Scene()
    scene.limiter.heard(*ORDERS, '"project";r=400;t=40, "endpoint";r=2;t=40')
    assert scene.admitted(*ORDERS) == 2
    assert scene.ask("PUT", "/instances") == 0


def test_answers_that_overtake_each_other_do_not_raise_what_is_left() -> None:
    """Threads read their answers in any order."""
    scene = Scene()
    scene.limiter.heard(*ORDERS, '"endpoint";r=1;t=40')
    scene.limiter.heard(*ORDERS, '"endpoint";r=5;t=41')
    assert scene.admitted(*ORDERS) == 1


def test_a_new_window_of_the_server_counts_anew() -> None:
    """Even if ours has not quite ended: clocks round differently."""
    scene = Scene()
    scene.limiter.heard(*ORDERS, '"endpoint";r=0;t=1')
    scene.limiter.heard(*ORDERS, '"endpoint";r=59;t=60')
    assert scene.admitted(*ORDERS) == 59


@pytest.mark.parametrize("urgency", list(Urgency))
def test_a_429_makes_everybody_pause(urgency: Urgency) -> None:
    """Asking on while sent away prolongs the ban."""
    scene = Scene()
    scene.limiter.refused(*LIST, timedelta(seconds=17), "")
    for method, path in (LIST, ORDERS, ("PUT", "/instances")):
        with pytest.raises(Throttled):
            scene.ask(method, path, urgency, patience_s=16)
    assert scene.ask(*ORDERS, urgency, patience_s=17) == 17


def test_a_pause_is_not_lifted_by_an_answer_from_before() -> None:
    """It may have been on its way when the refusal came."""
    scene = Scene()
    scene.limiter.refused(*LIST, timedelta(seconds=17), "")
    scene.limiter.heard(*ORDERS, '"project";r=480;t=50, "endpoint";r=50;t=50')
    with pytest.raises(Throttled):
        scene.ask(*ORDERS)


def test_a_429_that_proves_to_be_about_one_path_spares_the_others() -> None:
    """A neighbour hammering one list must not stop our deletions."""
    scene = Scene()
    scene.limiter.refused(*LIST, timedelta(seconds=17), '"project";r=300;t=17, "endpoint";r=0;t=17')
    assert scene.ask("PUT", "/instances") == 0
    assert scene.ask(*LIST, patience_s=17) == 17


@pytest.mark.parametrize(
    ("retry_after", "expected"), [(None, 10), (timedelta(seconds=0), 10), (timedelta(days=7), 600)]
)
def test_a_429_without_a_sensible_hint(retry_after: timedelta | None, expected: float) -> None:
    """No hint is no leave to go on, and a week is no pause but a mistake."""
    scene = Scene()
    scene.limiter.refused(*LIST, retry_after, "")
    assert scene.ask(*ORDERS, patience_s=1000) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ('"project";r=486;t=37, "endpoint";r=48;t=37', {"project": (486, 37), "endpoint": (48, 37)}),
        ('"project" ; t=37 ; r=486', {"project": (486, 37)}),
        ("project;r=1;t=2", {"project": (1, 2)}),
        ('"project";r=486', {}),
        ('"project";r=-1;t=2', {}),
        ('"project";r=many;t=2', {}),
        ('"project";r=99999999999999999999;t=2', {}),
        ("", {}),
        (";;,,=;r=;t", {}),
        ("500", {}),
        ('"project";r=\x1f4;t= 5', {"project": (4, 5)}),
    ],
)
def test_the_header_is_read_leniently(header: str, expected: dict[str, tuple[int, int]]) -> None:
    """What cannot be read is left out; it is a hint, not a contract."""
    assert parse_ratelimit(header) == expected


def test_paths_long_unused_are_forgotten() -> None:
    """Each machine has a path of its own, and a process lives for months."""
    scene = Scene()
    for number in range(5000):
        scene.clock.advance(0.2)
        scene.ask("GET", f"/instances/{number}")
    assert len(scene.limiter._paths) <= 1000


def test_after_a_pause_the_urgent_go_first() -> None:
    """A poll that wakes up first still waits until the urgent call has left."""
    clock = FakeClock()
    order: list[str] = []
    gate, waiting = threading.Event(), threading.Semaphore(0)

    def wait(seconds: float) -> None:
        waiting.release()
        gate.wait(5)
        # The poll comes back before the urgent one has.
        if threading.current_thread().name == "urgent":
            threading.Event().wait(0.1)
        threading.Event().wait(min(seconds, 0.01))

    limiter = RateLimiter(clock=clock, share=1.0, wait=wait)
    limiter.refused(*LIST, timedelta(seconds=17), "")

    def ask(name: str, key: tuple[str, str], urgency: Urgency) -> threading.Thread:
        def run() -> None:
            limiter.acquire(*key, urgency, 100.0)
            order.append(name)

        thread = threading.Thread(target=run, name=name)
        thread.start()
        assert waiting.acquire(timeout=5)
        return thread

    threads = [ask("routine", LIST, ROUTINE), ask("urgent", ORDERS, URGENT)]
    clock.advance(17)
    gate.set()
    for thread in threads:
        thread.join(5)
    assert order == ["urgent", "routine"]


def test_what_did_not_leave_is_not_counted() -> None:
    """An outage must not use up what is needed right after it."""
    scene = Scene()
    scene.limiter.heard(*ORDERS, '"endpoint";r=60;t=40')
    for _ in range(100):
        scene.ask(*ORDERS)
        scene.limiter.give_back(*ORDERS)
    assert scene.admitted(*ORDERS) == 60


def test_many_threads_get_exactly_the_limit() -> None:
    """Counting and admitting are one step."""
    scene = Scene()
    admitted = []

    def ask() -> None:
        try:
            scene.ask(*ORDERS)
        except Throttled:
            return
        admitted.append(1)

    threads = [threading.Thread(target=ask) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 60


def test_a_throttled_list_makes_orders_wait_in_the_same_client(toy: Toy, make_cloud: MakeCloud) -> None:
    """The 429's body is too short to be JSON, as documented."""
    clock = FakeClock()
    toy.on("GET", "/instances", raw(b"Rate limit!", 429, Retry_After="17"))
    toy.on("POST", "/instances", ok(INSTANCE, 202))
    cloud = make_cloud(clock=clock, wait=clock.advance, timeout=timedelta(seconds=20))
    with pytest.raises(Throttled) as raised:
        cloud.list_instances()
    assert raised.value.retry_after == timedelta(seconds=17)
    assert cloud.create_instance(ORDER) == INSTANCE
    assert clock.monotonic() == 17


def test_a_pause_longer_than_the_deadline_is_said_and_nothing_is_sent(toy: Toy, make_cloud: MakeCloud) -> None:
    """The caller learns at once when to come back."""
    clock = FakeClock()
    toy.on("GET", "/instances", raw(b"Rate limit!", 429, Retry_After="17"))
    cloud = make_cloud(clock=clock, wait=clock.advance, timeout=timedelta(seconds=10))
    for _ in range(2):
        with pytest.raises(Throttled):
            cloud.list_instances()
    with pytest.raises(Throttled) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.status is None
    assert len(toy.all_seen) == 2  # the login and the first list


def test_retry_after_may_be_a_date(toy: Toy, make_cloud: MakeCloud) -> None:
    """HTTP allows both forms."""
    toy.on("GET", "/instances", raw(b"", 429, Retry_After="Mon, 05 Jan 2026 00:00:30 GMT"))
    with pytest.raises(Throttled) as raised:
        make_cloud(clock=FakeClock()).list_instances()
    assert raised.value.retry_after == timedelta(seconds=30)


def test_a_retry_after_that_makes_no_sense_is_left_out(toy: Toy, make_cloud: MakeCloud) -> None:
    """Better none than a wrong one."""
    toy.on("GET", "/instances", raw(b"", 429, Retry_After="soon"))
    with pytest.raises(Throttled) as raised:
        make_cloud().list_instances()
    assert raised.value.retry_after is None


def test_deletions_and_look_ups_go_on_while_polling_waits(toy: Toy, make_cloud: MakeCloud) -> None:
    """F78: the neighbour has used up nearly everything; what is left goes to what cannot wait."""
    clock = FakeClock()
    toy.on("GET", "/instances", ok([instance()], RateLimit='"project";r=3;t=40, "endpoint";r=50;t=40'))
    toy.on("GET", f"/instances/{INSTANCE}", ok(instance()))
    toy.on("PUT", "/instances", ok([], 202))
    cloud = make_cloud(clock=clock, wait=clock.advance, timeout=timedelta(seconds=10))
    cloud.list_instances()
    with pytest.raises(Throttled):
        cloud.list_instances()
    with pytest.raises(Throttled):
        cloud.locations()
    assert cloud.get_instance(INSTANCE) is not None
    cloud.delete_instances([Deletion(instance_id=INSTANCE, volume_ids=None)])
    assert clock.monotonic() == 0


def test_an_outage_does_not_use_up_the_limit(toy: Toy, make_cloud: MakeCloud) -> None:
    """All sixty orders of the minute are still there when the network is back."""
    clock = FakeClock()
    toy.on("POST", "/instances", ok(INSTANCE, 202))
    cloud = make_cloud(clock=clock, wait=clock.advance, rate_share=0.1, timeout=timedelta(seconds=10))
    cloud.create_instance(ORDER)
    toy.close()
    for _ in range(20):
        with pytest.raises(NotSent):
            cloud.create_instance(ORDER)


def test_a_call_resent_after_a_401_counts_twice(toy: Toy, make_cloud: MakeCloud) -> None:
    """The server counts both."""
    clock = FakeClock()
    toy.on("POST", "/instances", error(401, "unauthorized_request", "Invalid token"))
    cloud = make_cloud(clock=clock, wait=clock.advance, rate_share=0.05, timeout=timedelta(seconds=10))
    for _ in range(2):
        with pytest.raises(Exception, match=r"Invalid token|share"):
            cloud.create_instance(ORDER)
    assert len(toy.seen("POST", "/instances")) == 3
