"""Startup scripts at the cloud: there before the machine is ordered, gone when nobody needs them, whatever crashes."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.envelope import Event, Recorded
from app.domain.ids import Mark
from app.domain.instance.events import FailureCode
from app.domain.offering import Contract
from app.domain.script_decide import RecordScriptDeleted, RecordScriptUploaded
from app.domain.scripts import ScriptEnd, ScriptUploadAttempted
from app.domain.startup import ClaimInstallation
from app.errors import NotSent, OutcomeUnknown, Rejected
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import ScriptDesk, Scripts
from app.startup.sources import ScriptSource
from app.startup.template import ScriptError

from .conftest import MakeHouse
from .house import House, spec
from .world import NO_STOCK, TIMEOUT, Killed, refuses

SECRET = "abcdef.0123456789abcdef"
OWN = "#!/bin/sh\njoin {{ join_token | shell_quote }} {{ hostname }} {{ contract }}\n"
SAME = "#!/bin/sh\njoin {{ join_token | shell_quote }}\n"
KEEP = timedelta(minutes=10)


class Office:
    """The house's script jobs, made anew with every start."""

    def __init__(self, house: House, template: str = OWN) -> None:
        self.house = house
        self.seen: list[tuple[int, int]] = []
        self.template = template
        self.open()

    def open(self) -> None:
        """Take the house's current process over."""
        bench = self.house.provision.bench
        self.keeper = Scripts(bench=bench, look_every=KEEP, observer=lambda ours, all_: self.seen.append((ours, all_)))
        source = ScriptSource(template=self.template, values={"join_token": lambda: SECRET})
        self.desk = ScriptDesk(bench=bench, keeper=self.keeper, sources={"h100": source})
        self.house.provision = Provision(
            bench=bench, executor=self.house.executor, parallel=self.house.parallel, desk=self.desk
        )

    def restart(self) -> None:
        """The process is killed; the next one looks at the cloud anew."""
        self.house.restart()
        self.open()

    def texts(self) -> list[str]:
        """What is stored at the cloud."""
        return [text for _, text in self.house.world.texts.values()]


@pytest.fixture
def office(house: House) -> Office:
    """A house whose group h100 renders its own scripts."""
    house.configure(spec(startup_script="text", startup_script_keep=KEEP, contracts=(Contract.SPOT,)))
    return Office(house)


def test_a_machine_is_ordered_with_its_own_script(office: Office) -> None:
    """Rendered for it, under a name that is ours and unique, and in the books by name and id alone."""
    house = office.house
    (name,) = house.grow()
    house.provision_until_quiet()
    assert office.texts() == [f"#!/bin/sh\njoin {SECRET} {name} spot\n"]
    assert house.world.orders[0].startup_script_id == "script-1"
    assert house.world.uploads == [f"ca:v1:inst1:{name}:1"]
    assert house.instance(name).script == f"ca:v1:inst1:{name}:1"
    assert [kind for kind in house.types() if "script" in kind] == [
        "cloud.script-upload-attempted",
        "cloud.script-uploaded",
        "instance.script-assigned",
    ]


def test_a_script_goes_when_its_machine_has_run_for_a_while(office: Office) -> None:
    """Ten minutes: nobody promises that the text is copied when the machine is ordered."""
    house = office.house
    (name,) = house.running()
    house.clock.advance(KEEP - timedelta(seconds=21))
    office.keeper.run()
    assert len(office.texts()) == 1
    house.clock.advance(1)
    office.keeper.run()
    assert office.texts() == []
    assert not house.books.cloud.scripts
    assert house.types()[-2:] == ["cloud.script-deletion-attempted", "cloud.script-deleted"]
    office.keeper.run()
    assert house.instance(name).script is not None


def test_a_script_goes_at_once_with_a_machine_that_nobody_wants(office: Office) -> None:
    """Also one whose creation failed."""
    house = office.house
    house.world.always_create = refuses(NO_STOCK)
    (failed,) = house.grow()
    house.provision_until_quiet()
    assert house.state(failed) == "failed"
    office.keeper.run()
    assert office.texts() == []


def test_what_is_given_back_while_its_script_is_stored_is_not_ordered(office: Office) -> None:
    """The upload may take half a minute; its script goes as well."""
    house = office.house
    (name,) = house.grow()

    def given_back_meanwhile(store: Callable[[], str]) -> str:
        script_id = store()
        house.delete(name)
        return script_id

    house.world.on_upload.append(given_back_meanwhile)
    house.provision_until_quiet()
    assert house.world.orders == []
    assert house.state(name) == "cancelled"
    office.keeper.run()
    assert office.texts() == []


def test_machines_with_the_same_script_share_it(house: House) -> None:
    """Constant scripts are one upload by content, and stay as long as one machine needs them."""
    house.configure(spec(startup_script="text"))
    office = Office(house, SAME)
    names = house.grow(5)
    house.provision_until_quiet()
    assert len(house.world.uploads) == len(house.world.texts) == 1
    assert {order.startup_script_id for order in house.world.orders} == {"script-1"}
    house.delete(*names[:4])
    office.keeper.run()
    assert len(office.texts()) == 1
    house.delete(names[4])
    office.keeper.run()
    assert office.texts() == []


def test_a_script_that_is_being_deleted_is_not_shared(house: House) -> None:
    """The deletion failed once; meanwhile the next machine gets a new upload."""
    house.configure(spec(startup_script="text"))
    office = Office(house, SAME)
    (first,) = house.grow()
    house.provision_until_quiet()
    house.delete(first)
    house.world.on_script_delete.append(NotSent("down", code="x"))
    office.keeper.run()
    house.grow()
    house.provision_until_quiet()
    assert len(house.world.uploads) == 2
    office.keeper.run()
    assert [name for name, _ in house.world.texts.values()] == [house.world.uploads[1]]


def stored_and_killed(store: Callable[[], str]) -> str:
    """The upload is done, and the process dies before it hears of it."""
    store()
    raise Killed


def test_what_a_crash_leaves_behind_is_swept(office: Office) -> None:
    """Killed between upload and answer: nothing was ordered, the wish is ordered again, the text goes."""
    house = office.house
    (name,) = house.grow()
    house.world.on_upload.append(stored_and_killed)
    with pytest.raises(Killed):
        house.provision.run()
    office.restart()
    assert len(office.texts()) == 1
    office.keeper.run()
    assert office.texts() == []
    house.ticks(20)
    assert (house.state(name), len(house.world.alive)) == ("provisioning", 1)
    assert [text_name for text_name, _ in house.world.texts.values()] == [f"ca:v1:inst1:{name}:2"]


def test_an_upload_that_never_arrived_is_forgotten(office: Office) -> None:
    """Killed before the request left."""
    house = office.house
    house.grow()

    def killed(_store: Callable[[], str]) -> str:
        raise Killed

    house.world.on_upload.append(killed)
    with pytest.raises(Killed):
        house.provision.run()
    office.restart()
    assert house.books.cloud.scripts
    office.keeper.run()
    assert not house.books.cloud.scripts
    assert house.types()[-1] == "cloud.script-deleted"


class WatchedSet(set[str]):
    """Something happens in the moment in which somebody looks whether a name is in it."""

    def __init__(self, names: set[str], on_look: Callable[[], None]) -> None:
        super().__init__(names)
        self._on_look = on_look

    def __contains__(self, name: object) -> bool:
        """Whether it is, after that."""
        self._on_look()
        return super().__contains__(name)


def test_an_upload_that_ends_while_scripts_are_swept_is_kept(office: Office) -> None:
    """It is under way when the sweep lists the scripts, and in the books when the sweep has looked at it."""
    house = office.house
    (name,) = house.grow()
    script = f"ca:v1:inst1:{name}:1"

    def swept_meanwhile(store: Callable[[], str]) -> str:
        script_id = store()

        def end() -> None:
            if house.world.script_lists:
                house.execute(RecordScriptUploaded(instance=name, script=script, script_id=script_id))
                under_way.discard(script)

        office.keeper.under_way = under_way = WatchedSet(office.keeper.under_way, end)
        office.keeper.run()
        return script_id

    house.world.on_upload.append(swept_meanwhile)
    house.provision_until_quiet()
    assert house.world.orders[0].startup_script_id in house.world.texts
    assert house.instance(name).script == script


def test_a_sweep_right_after_the_intent_does_not_take_it_for_one_of_a_crash(office: Office) -> None:
    """The upload is about to begin; forgotten, its machine would be ordered with a script whose token nobody knows."""
    house = office.house

    def sweep(recorded: Sequence[Recorded[Event]]) -> None:
        if any(isinstance(item.event, ScriptUploadAttempted) for item in recorded):
            office.keeper.run()

    house.ledger.subscribe(sweep)
    (name,) = house.grow()
    house.provision_until_quiet()
    assert house.world.script_lists == 1
    assert house.instance(name).script == f"ca:v1:inst1:{name}:1"
    assert house.types().count("cloud.script-deleted") == 0


def test_a_script_that_is_stored_is_not_recorded_as_never_uploaded(office: Office) -> None:
    """Whoever concludes that has looked before the answer came."""
    house = office.house
    (name,) = house.grow()
    house.provision_until_quiet()
    script = f"ca:v1:inst1:{name}:1"
    house.execute(RecordScriptDeleted(script=script, script_id=None, reason=ScriptEnd.NEVER_UPLOADED))
    assert house.books.cloud.scripts[script].script_id == "script-1"


def test_an_upload_of_unknown_outcome_is_no_order_of_unknown_outcome(office: Office) -> None:
    """The order was never sent, so it may be tried again at once; the stored text is found by its name and goes."""
    house = office.house

    def stored_and_lost(store: Callable[[], str]) -> str:
        store()
        raise TIMEOUT

    house.world.on_upload.append(stored_and_lost)
    (name,) = house.grow()
    house.provision.run()
    assert house.state(name) == "requested"
    assert "instance.create-outcome-unknown" not in house.types()
    house.clock.advance(2)
    house.provision.run()
    assert house.state(name) == "provisioning"
    office.keeper.run()
    assert [text_name for text_name, _ in house.world.texts.values()] == [f"ca:v1:inst1:{name}:2"]


def fill(house: House, ours: int, theirs: int) -> None:
    """Scripts in the project that no machine needs."""
    for number in range(ours):
        house.world.texts[f"left-{number}"] = (f"ca:v1:inst1:gone-{number:08}:1", "x")
    for number in range(theirs):
        house.world.texts[f"theirs-{number}"] = (f"somebody's {number}", "x")


def test_room_is_made_when_the_quota_is_used_up(office: Office) -> None:
    """F26: 100 scripts, 60 of them ours and unused: ours go, the creation proceeds, theirs stay."""
    house = office.house
    fill(house, 60, 40)
    (name,) = house.grow()
    house.provision_until_quiet()
    assert house.state(name) == "provisioning"
    assert sum(text_name.startswith("somebody's") for text_name, _ in house.world.texts.values()) == 40
    assert len(house.world.texts) == 41
    assert office.seen == [(0, 40)]


def test_without_room_the_failure_says_so(office: Office) -> None:
    """F26: 100 scripts of others: class other, a code of its own, what to do, and nothing of theirs touched."""
    house = office.house
    fill(house, 0, 100)
    (name,) = house.grow()
    house.provision_until_quiet()
    failed = house.instance(name)
    assert (failed.state, failed.error_class, failed.error_code) == ("failed", 99, FailureCode.SCRIPT_QUOTA)
    assert failed.error_message == (
        "startup script: Startup script quota exceeded; "
        "delete startup scripts in Verda's console or ask Verda for a higher quota"
    )
    assert (len(house.world.texts), house.world.orders) == (100, [])
    assert not house.books.cloud.scripts
    del house.world.texts["theirs-0"]
    (again,) = house.grow()
    house.provision_until_quiet()
    assert house.state(again) == "provisioning"


def test_a_script_the_api_refuses_is_one_clear_failure(office: Office) -> None:
    """F42: the API is asked once for a configuration, not for every node; new settings are tried anew."""
    house = office.house

    def too_large(_store: Callable[[], str]) -> str:
        raise Rejected(f"script too long: join {SECRET}", code="invalid_request", status=400)

    house.world.on_upload.append(too_large)
    names = house.grow(3)
    house.provision_until_quiet()
    assert {(house.state(name), house.instance(name).error_code) for name in names} == {
        ("failed", FailureCode.SCRIPT_REFUSED)
    }
    assert len(house.world.uploads) == 1
    assert SECRET not in str([house.instance(name).error_message for name in names])
    office.desk.replace_sources(office.desk.sources)
    house.configure(spec(startup_script="text", contracts=(Contract.SPOT,), max_size=19))
    (again,) = house.grow()
    house.provision_until_quiet()
    assert house.state(again) == "provisioning"


def test_a_value_that_is_gone_fails_the_order_and_not_the_job(office: Office) -> None:
    """The file of the join token was removed while we ran."""
    house = office.house

    def gone() -> str:
        raise ScriptError("cannot have join_token from its file: there is no such file")

    office.desk.replace_sources({"h100": ScriptSource(template=OWN, values={"join_token": gone})})
    (name,) = house.grow()
    house.provision_until_quiet()
    assert house.instance(name).error_message == (
        "the startup script cannot have join_token from its file: there is no such file; "
        "mend the node group's startup script"
    )
    assert house.world.uploads == []
    office.desk.replace_sources({"h100": ScriptSource(template=OWN, values={"join_token": lambda: SECRET})})
    (again,) = house.grow()
    house.provision_until_quiet()
    assert house.state(again) == "provisioning"


def test_scripts_of_other_installations_are_not_ours(office: Office) -> None:
    """The name carries the installation; a person's copy of it with another id stays too."""
    house = office.house
    house.world.texts["a"] = ("ca:v1:inst2:h100-aaaaaaaa:1", "x")
    house.world.texts["b"] = ("notes on ca:v1:inst1:", "x")
    office.keeper.run()
    assert set(house.world.texts) == {"a", "b"}


def predecessor(house: House) -> str:
    """A machine that another installation of our cluster has just ordered, with its script; the machine's name."""
    name = "h100-pppppppp"
    theirs = Mark(cluster="c1", installation="lost1", group="h100").text()
    house.world.records["id-old"] = house.machine(name, "id-old", description=theirs, status="provisioning")
    house.world.texts["old"] = (f"ca:v1:lost1:{name}:1", SAME)
    return name


def test_scripts_of_a_claimed_installation_go_when_its_machines_have_run_for_a_while(office: Office) -> None:
    """Nobody else would delete them; they hold join secrets and count against the quota."""
    house = office.house
    name = predecessor(house)
    house.world.texts["used"] = ("ca:v1:lost1:h100-qqqqqqqq:1", SAME)
    house.tick(house.observe)
    house.execute(ClaimInstallation(installation_id="lost1"))
    house.clock.advance(KEEP)
    office.keeper.run()  # not taken over yet
    house.tick(house.observe)
    assert house.state(name) == "provisioning"
    house.clock.advance(KEEP)
    office.keeper.run()  # may still read its script
    house.world.boot()
    house.tick(house.observe)
    office.keeper.run()
    assert sorted(house.world.texts) == ["old", "used"]
    house.clock.advance(KEEP)
    office.keeper.run()
    assert house.world.texts == {}
    assert office.seen[-1] == (0, 0)


def test_scripts_of_a_claimed_installation_stay_as_long_as_its_last_orders_may_show_up(office: Office) -> None:
    """Lists lag: a machine ordered just before the claim is there and not seen."""
    house = office.house
    predecessor(house)
    house.tick(house.observe)
    house.execute(ClaimInstallation(installation_id="lost1"))
    house.world.records["id-old"] = replace(house.world.records["id-old"], status="error")
    house.look(2)
    assert house.state("h100-pppppppp") == "failed"
    office.keeper.run()
    assert sorted(house.world.texts) == ["old"]
    house.clock.advance(KEEP)
    office.keeper.run()
    assert house.world.texts == {}


def test_scripts_of_a_claimed_installation_stay_while_it_lives_on(office: Office) -> None:
    """What it makes after the claim proves that somebody else goes on as it: hands off."""
    house = office.house
    predecessor(house)
    house.tick(house.observe)
    house.execute(ClaimInstallation(installation_id="lost1"))
    house.world.boot()
    house.tick(house.observe)
    alive = replace(house.world.records["id-old"], instance_id="id-new", hostname="h100-qqqqqqqq", created_at=house.now)
    house.world.records["id-new"] = alive
    house.tick(house.observe)
    house.clock.advance(2 * KEEP)
    office.keeper.run()
    assert sorted(house.world.texts) == ["old"]


@pytest.mark.usefixtures("office")
def test_no_secret_is_in_the_database(house: House) -> None:
    """Not in an event, not in a projection, not in the file's free pages."""
    house.running(2)
    house.close()
    assert SECRET.encode() not in b"".join(path.read_bytes() for path in house.path.parent.glob(f"{house.path.name}*"))
    with closing(sqlite3.connect(house.path)) as connection:
        assert connection.execute("SELECT count(*) FROM instances WHERE script IS NOT NULL").fetchone() == (2,)


def test_a_listing_that_fails_is_tried_again(office: Office) -> None:
    """And deletes nothing meanwhile."""
    house = office.house
    fill(house, 1, 0)
    house.world.on_scripts.append(OutcomeUnknown("read timed out", code="timeout"))
    office.keeper.run()
    assert len(house.world.texts) == 1
    office.keeper.run()
    assert house.world.texts == {}


def test_sharing_goes_on_after_a_restart(make_house: MakeHouse) -> None:
    """The books remember digests, so a second process uploads nothing again."""
    house = make_house()
    house.configure(spec(startup_script="text"))
    office = Office(house, SAME)
    house.grow()
    house.provision_until_quiet()
    office.restart()
    house.grow()
    house.provision_until_quiet()
    assert len(house.world.uploads) == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Rejected("Invalid token", code="unauthorized_request", status=401), FailureCode.FORBIDDEN),
        (Rejected("Insufficient funds", code="insufficient_funds", status=402), FailureCode.INSUFFICIENT_FUNDS),
        (Rejected("Insufficient scope", code="insufficient_scope", status=403), FailureCode.FORBIDDEN),
    ],
)
def test_what_is_wrong_with_the_account_is_not_blamed_on_the_script(
    office: Office, error: Rejected, code: FailureCode
) -> None:
    """Told as it would be for the order; no script is deleted for it, and nothing is remembered against the group."""
    house = office.house
    fill(house, 1, 0)

    def refused(_store: Callable[[], str]) -> str:
        raise error

    house.world.on_upload.append(refused)
    (name,) = house.grow()
    house.provision_until_quiet()
    assert house.instance(name).error_code == code
    assert list(house.world.texts) == ["left-0"]
    assert office.desk._refused == {}
