"""What happens in the demonstration, in order."""

from collections import Counter

from app.cli.demo_stage import DemoFailed, Stage
from app.rpc.gen import externalgrpc_pb2 as pb

SLOW_CREATES = {
    "match": {"method": "POST", "path": "/v1/instances"},
    "times": 2,
    "phase": "after_commit",
    "action": {"kind": "delay", "seconds": 8},
}
"""The next two orders are carried out at once and answered late."""

_NAMES = {1: "Running", 2: "Creating", 3: "Deleting"}


def play(stage: Stage) -> None:
    """Every act; raises DemoFailed at the first thing that is not as it must be."""
    grow(stage)
    lose_spot_machine(stage)
    run_out_of_stock(stage)
    die_in_the_middle(stage)
    give_one_back(stage)


def _say(stage: Stage, words: str) -> None:
    stage.console.print(f"[bold cyan]▶[/] {words}", soft_wrap=True)


def _states(stage: Stage, group: str) -> Counter[str]:
    return Counter(_NAMES[instance.status.instanceState] for instance in stage.client.instances(group))


def _show(stage: Stage, group: str) -> None:
    states = ", ".join(f"{count} {state}" for state, count in sorted(_states(stage, group).items())) or "no instances"
    stage.console.print(f"    {group}: target size {stage.client.target_size(group)}; {states}")


def _check(is_so: bool, words: str) -> None:  # noqa: FBT001 - the one thing it is about
    if not is_so:
        raise DemoFailed(words)


def _all_running(stage: Stage, group: str, count: int) -> bool:
    return _states(stage, group) == {"Running": count}


def grow(stage: Stage) -> None:
    """IncreaseSize answers at once; the machines come by themselves."""
    _say(stage, "IncreaseSize(gpu-workers, 3): answered as soon as it is durable, the machines come later")
    stage.client.increase_size("gpu-workers", 3)
    _check(stage.client.target_size("gpu-workers") == 3, "the target size is not 3 right after the call")  # noqa: PLR2004
    _check(_states(stage, "gpu-workers") == {"Creating": 3}, "not all three are listed as Creating")
    _show(stage, "gpu-workers")
    took = stage.until("three machines run", lambda: _all_running(stage, "gpu-workers", 3))
    stage.console.print(f"    all Running after {took:.1f} s")
    _show(stage, "gpu-workers")


def lose_spot_machine(stage: Stage) -> None:
    """The cloud takes a spot machine back; the target falls with it, so the autoscaler decides anew."""
    _say(stage, "IncreaseSize(gpu-spot, 2), then the cloud evicts one of them")
    stage.client.increase_size("gpu-spot", 2)
    stage.until("two spot machines run", lambda: _all_running(stage, "gpu-spot", 2))
    _show(stage, "gpu-spot")
    victim = next(item for item in _alive(stage) if item["hostname"].startswith("gpu-spot-"))
    stage.sim("POST", f"/instances/{victim['id']}/evict")
    took = stage.until("the eviction is noticed", lambda: stage.client.target_size("gpu-spot") == 1)
    stage.console.print(f"    {victim['hostname']} evicted, noticed after {took:.1f} s")
    _show(stage, "gpu-spot")


def run_out_of_stock(stage: Stage) -> None:
    """A stock-out reaches the autoscaler as error information at once; it deletes the failed instance."""
    _say(stage, "IncreaseSize(sold-out, 1): there are none")
    stage.client.increase_size("sold-out", 1)
    stage.until("the stock-out is told", lambda: bool(_failures(stage, "sold-out")))
    failed = _failures(stage, "sold-out")[0]
    info = failed.status.errorInfo
    stage.console.print(
        f"    {failed.id}: class {info.instanceErrorClass}, code {info.errorCode}, «{info.errorMessage}»"
    )
    _check(info.instanceErrorClass == 1, "a stock-out must have class 1, out of resources")
    stage.client.delete_nodes("sold-out", [failed.id])
    _check(stage.client.target_size("sold-out") == 0, "deleting the failed instance did not lower the target")
    _show(stage, "sold-out")


def _failures(stage: Stage, group: str) -> list[pb.Instance]:
    return [instance for instance in stage.client.instances(group) if instance.status.errorInfo.errorCode]


def die_in_the_middle(stage: Stage) -> None:
    """SIGKILL while the cloud has taken orders and not answered yet: none is forgotten, none is bought twice."""
    _say(stage, "IncreaseSize(gpu-workers, 2), and kill -9 of the provider before the cloud has answered the orders")
    stage.sim("POST", "/faults", SLOW_CREATES)
    known = len(_alive(stage))
    stage.client.increase_size("gpu-workers", 2)
    stage.until("both orders have reached the cloud", lambda: len(_alive(stage)) == known + 2)
    stage.kill_provider()
    stage.console.print("    killed: two machines exist whose ids the provider never heard; starting again")
    stage.start_provider()
    _check(stage.client.target_size("gpu-workers") == 5, "the target size did not survive")  # noqa: PLR2004
    _show(stage, "gpu-workers")
    took = stage.until("five machines run", lambda: _all_running(stage, "gpu-workers", 5), timeout_s=30)
    stage.console.print(f"    all Running {took:.1f} s after the restart, none twice")
    _show(stage, "gpu-workers")


def give_one_back(stage: Stage) -> None:
    """DeleteNodes takes effect at once for the autoscaler; machine and volume go."""
    victim = stage.client.instances("gpu-workers")[0].id
    _say(stage, f"DeleteNodes(gpu-workers, {victim})")
    stage.client.delete_nodes("gpu-workers", [victim])
    _check(stage.client.target_size("gpu-workers") == 4, "the target size did not fall at once")  # noqa: PLR2004
    _show(stage, "gpu-workers")
    stage.until(
        "the instance is gone", lambda: all(item.id != victim for item in stage.client.instances("gpu-workers"))
    )
    _show(stage, "gpu-workers")


def _alive(stage: Stage) -> list[dict[str, str]]:
    truth = stage.sim("GET", "/truth")
    return [item for item in truth["instances"] if item["ended"] is None]
