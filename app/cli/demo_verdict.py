"""After the demonstration: what the log says, what it cost, and whether the books tell the truth."""

from app.cli.demo_stage import Stage
from app.cli.render import Table
from app.store import queries
from app.store.reading import reading

_MANY = 1000


def print_events(stage: Stage) -> None:
    """The log in words."""
    stage.console.print("\n[bold]What happened[/], from the log:")
    with reading(stage.database) as moment:
        rows = queries.events(moment, limit=_MANY)
    for row in rows:
        stage.console.print(
            f"  {row['position']:>4}  {row['recorded_at'][11:23]}  {row['actor']:<20} {row['what']}",
            markup=False,
            soft_wrap=True,
        )


def print_costs(stage: Stage) -> None:
    """What each machine has cost."""
    stage.console.print("\n[bold]What it cost[/], per instance:")
    with reading(stage.database) as moment:
        rows = queries.instances(moment)
    Table("instance", "state", "instance_type", "contract", "price_per_hour", "hours", "cost", "reason").print(rows)


def compare(stage: Stage) -> list[str]:
    """The simulator's truth beside the books; every difference in words."""
    truth = stage.sim("GET", "/truth")
    alive = {item["hostname"]: item["id"] for item in truth["instances"] if item["ended"] is None}
    doubles = len([item for item in truth["instances"] if item["ended"] is None]) - len(alive)
    with reading(stage.database) as moment:
        rows = queries.instances(moment, ended=False)
    books = {row["instance"]: row["instance_id"] for row in rows}
    stage.console.print("\n[bold]Truth and books[/]:")
    for name in sorted(alive.keys() | books.keys()):
        line = f"  {name:<24} cloud {alive.get(name, '-'):<38} books {books.get(name) or '-'}"
        stage.console.print(line, soft_wrap=True)
    volumes = [volume for volume in truth["volumes"] if volume.get("instance_id") not in set(alive.values())]
    stage.console.print(f"  volumes without a machine: {len(volumes)}, machines twice: {doubles}")
    differences = [
        f"{name}: {alive.get(name)} at the cloud, {books.get(name)} in the books" for name in _unequal(alive, books)
    ]
    differences += [f"volume {volume['id']} ({volume.get('name')}) belongs to no machine" for volume in volumes]
    if doubles:
        differences.append(f"{doubles} machines exist twice")
    return differences


def _unequal(alive: dict[str, str], books: dict[str, str]) -> list[str]:
    return [name for name in sorted(alive.keys() | books.keys()) if alive.get(name) != books.get(name)]
