"""What code of a system raises: its own error, which names system and part, with what was raised as its cause."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import BrokenSystem, BucketCatalogError, CatalogWarning, InvalidOption, StoreUnavailable
from bucketcatalog.cli import run
from bucketcatalog.query.reads import Read
from bucketcatalog.registry import Job
from bucketcatalog.registry.installed import Registry

from ...kit.installing import installed
from ...kit.world import World, rows

SOURCE = f"""
from bucketcatalog.query.views import Computed, View
from bucketcatalog.registry import IN_CATALOG, System
import pyarrow as pa
from {__name__} import DECLARED, failing_column
weights = View("w", "failing.things", {{"k": "k", "x": Computed(pa.int64(), ("n",), failing_column)}})
SYSTEM = System("failing", DECLARED, views=(weights,), reads="{__name__}:READS", writes="{__name__}:WRITES", jobs="{__name__}:JOBS",
    commands="{__name__}:APP", collects={{"failing.things": "{__name__}:deleter"}})
"""
"""A system whose code is this module's."""
EMPTY = pa.schema([("x", pa.int64())])

fails: dict[str, Callable[[], Any]] = {}
"""What is done instead, at the places that are called so."""


def at(place: str, otherwise: Any = None) -> Any:
    return fails[place]() if place in fails else otherwise


def raising(error: Exception) -> Callable[[], Any]:
    def fail() -> Any:
        raise error

    return fail


def failing_column(n: pa.Array) -> pa.Array:
    return at("column", n)


class OneTask:
    """A task of a read, of a write and of a job."""

    rows = 1

    def read(self, store: object) -> Iterator[pa.Table]:
        yield EMPTY.empty_table()
        at("read task")

    def write(self, store: object, rows: object) -> int:
        return at("write task", 7)

    def run(self, store: object) -> int:
        return at("job task", 3)


class OneRead(Read):
    @property
    def schema(self) -> pa.Schema:
        return at("schema", EMPTY)

    @property
    def available(self) -> pa.Schema:
        return at("available", EMPTY)

    def tasks(self, most_rows: int) -> list[Any]:
        return at("tasks", [OneTask()])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"x": [1]}, EMPTY)
        at("batches")

    def explain(self) -> str:
        return at("explain", "one")


class Everything:
    """Reads and takes what is called ``failing.own``."""

    def names(self, snapshot: object) -> list[str]:
        return at("names", ["failing.own"])

    def read(self, snapshot: object, name: str, columns: object, where: object) -> Any:
        return at("read", OneRead()) if name == "failing.own" else None

    def takes(self, name: str) -> bool:
        return at("takes", name == "failing.own")

    def begin(self, place: object, name: str, schema: object) -> Any:
        from bucketcatalog.write.parts import Parts

        return at(
            "begin", Parts(OneTask(), lambda transaction, parts: at("finish", transaction.put("failing.things", {"k": "p"})))
        )


READS = WRITES = Everything()


class Sweeping:
    """A job that has been planned."""

    def __init__(self, snapshot: object, writer: object, *, least: int = 1) -> None:
        self.tasks = [OneTask()] * least

    def finish(self, outcomes: Sequence[int]) -> int:
        return at("finish", sum(outcomes))


def plan(snapshot: object, writer: object, *, least: int = 1) -> Any:
    return at("plan", Sweeping(snapshot, writer, least=least))


JOBS = {"sweep": Job(plan)}


def deleter(store: object) -> Any:
    return at("deleter", lambda references: at("delete", [True] * len(references)))


def declared() -> Any:
    from ...kit.world import declaring

    options = 'option (table) = { name: "failing.things" key: "k" data_reference: "k" };'
    return declaring(f"message Thing {{ {options} string k = 1; optional int64 n = 2; }}")


def app() -> Any:
    import typer

    made = typer.Typer()

    @made.callback()
    def root() -> None:
        """Commands that fail."""

    @made.command()
    def sweep(path: str = "") -> None:
        """Does it."""
        at("command")

    return made


DECLARED = declared()
APP = app()


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Callable[[], Any]]]:
    monkeypatch.syspath_prepend(installed(tmp_path, "failing", "failing_system:SYSTEM", SOURCE))
    fails.clear()
    yield fails
    fails.clear()


@pytest.fixture
def world(failing: object) -> World:
    world = World()
    world.commit(world.writer(), ("put", "failing.things", {"k": "a", "n": 1}))
    return world


def view(world: World) -> object:
    return rows(world.snapshot(), "w")


def view_in_tasks(world: World) -> object:
    scan = world.snapshot().scan("w")
    assert isinstance(scan, Read)
    return [list(task.read(world.store)) for task in pickle.loads(pickle.dumps(scan.tasks(1)))]


def own(world: World) -> Read:
    found = world.snapshot().scan("failing.own")
    assert isinstance(found, Read)
    return found


def own_in_tasks(world: World) -> object:
    return [list(task.read(world.store)) for task in pickle.loads(pickle.dumps(own(world).tasks(1)))]


def put(world: World) -> object:
    return world.commit(world.writer("v"), ("put", "failing.own", {"x": 1}))


def job(world: World) -> object:
    return world.catalog().run_job("failing.sweep", writer="maintainer-m", clock=world.clock)


def collected(world: World) -> object:
    world.commit(world.writer("u"), ("put", "failing.things", {"k": "b"}))
    world.commit(world.writer("u"), ("delete", "failing.things", {"k": "b"}))
    world.clock.tick(48 * 3_600_000_000)
    options: dict[str, Any] = {"writer": "maintainer-m", "clock": world.clock, "force": True, "dry_run": False}
    return world.catalog().collect(**options).problems


PLACES: list[tuple[str, Callable[[World], object], str]] = [
    ("column", view, "the column 'x' of its view 'w'"),
    ("column", view_in_tasks, "the column 'x' of its view 'w'"),
    ("read", own, "its read of 'failing.own'"),
    ("schema", lambda world: own(world).schema, "its read of 'failing.own'"),
    ("available", lambda world: own(world).available, "its read of 'failing.own'"),
    ("tasks", lambda world: own(world).tasks(1), "its read of 'failing.own'"),
    ("explain", lambda world: own(world).explain(), "its read of 'failing.own'"),
    ("batches", lambda world: list(own(world).to_batches()), "its read of 'failing.own'"),
    ("batches", lambda world: own(world).to_arrow(), "its read of 'failing.own'"),
    ("read task", own_in_tasks, "its read of 'failing.own'"),
    ("takes", put, "its write of 'failing.own'"),
    ("begin", put, "its write of 'failing.own'"),
    ("write task", put, "its write of 'failing.own'"),
    ("finish", put, "its write of 'failing.own'"),
    ("plan", job, "the plan of its job 'failing.sweep'"),
    ("job task", job, "a task of its job 'failing.sweep'"),
    ("finish", job, "finishing its job 'failing.sweep'"),
    ("deleter", collected, f"its deleter '{__name__}:deleter'"),
]
IDS = [f"{place} by {getattr(do, '__name__', '')}" for place, do, _ in PLACES]


@pytest.mark.parametrize(("place", "do", "part"), PLACES, ids=IDS)
def test_what_code_of_a_system_raises_is_its_error_and_names_the_part(
    failing: dict[str, Callable[[], Any]], world: World, place: str, do: Callable[[World], object], part: str
) -> None:
    defect = ValueError("of mine\n in two lines.")
    do(world)
    failing[place] = raising(defect)
    with pytest.raises(BrokenSystem) as caught:
        do(world)
    assert caught.value.message == f"The system 'failing' failed at {part}: ValueError: of mine in two lines."
    assert caught.value.__cause__ is defect
    assert caught.value.next_step == "Report it to the authors of its package, with the traceback."


@pytest.mark.parametrize(("place", "do", "part"), PLACES, ids=IDS)
@pytest.mark.parametrize(
    "meant", [InvalidOption("No.", next_step="Ask otherwise."), StoreUnavailable("Away.")], ids=["usage", "store"]
)
def test_what_it_raises_on_purpose_passes_as_it_is(
    failing: dict[str, Callable[[], Any]],
    world: World,
    place: str,
    do: Callable[[World], object],
    part: str,
    meant: BucketCatalogError,
) -> None:
    failing[place] = raising(meant)
    with pytest.raises(type(meant)) as caught:
        do(world)
    assert caught.value is meant


@pytest.mark.parametrize(
    ("place", "given", "do", "why"),
    [
        ("read", EMPTY, own, "its read of 'failing.own': a Schema came of it, and not a Read or None"),
        ("begin", None, put, "its write of 'failing.own': None came of it, and not Parts"),
        ("plan", None, job, "the plan of its job 'failing.sweep': None came of it, which has no tasks and no finish"),
        ("plan", [], job, "the plan of its job 'failing.sweep': a list came of it, which has no tasks and no finish"),
        ("column", None, view, "the column 'x' of its view 'w': an array of 1 values of int64 was to come of it, and not None"),
    ],
)
def test_what_code_of_a_system_gives_instead_is_its_error(
    failing: dict[str, Callable[[], Any]], world: World, place: str, given: Any, do: Callable[[World], object], why: str
) -> None:
    failing[place] = lambda: given
    with pytest.raises(BrokenSystem) as caught:
        do(world)
    assert caught.value.message == f"The system 'failing' failed at {why}."


@pytest.mark.parametrize("given", [None, "failing.own", [7]])
def test_names_that_are_none_are_a_warning_and_shown_nowhere(
    failing: dict[str, Callable[[], Any]], world: World, given: object
) -> None:
    failing["names"] = lambda: given
    with pytest.warns(CatalogWarning, match="The system 'failing' failed at the names of what it reads: "):
        assert {"w", "failing.things", "objects"} <= {*world.snapshot().tables} - {"failing.own"}


def test_a_deleter_that_raises_is_named_and_the_run_goes_on(failing: dict[str, Callable[[], Any]], world: World) -> None:
    failing["delete"] = raising(KeyError("x"))
    assert collected(world) == (f"the deleter '{__name__}:deleter' of the system 'failing' raised KeyError: 'x'",)


def test_jobs_that_are_none_are_the_systems_error_where_one_is_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong, why in [(plan, "is the function plan, and has to be a Job"), (Job(plan, "sweeper-"), "role is 'sweeper-'")]:
        monkeypatch.setitem(JOBS, "sweep", wrong)  # type: ignore[arg-type]
        with pytest.raises(BrokenSystem, match=f"The system 'failing' cannot be used: .*{__name__}:JOBS.*{why}"):
            job(world)


def test_an_option_that_a_job_does_not_take_is_its_users_error(world: World) -> None:
    with pytest.raises(InvalidOption, match="Its options are least"):
        world.catalog().run_job("failing.sweep", writer="maintainer-m", most=1)
    assert world.catalog().run_job("failing.sweep", writer="maintainer-m", clock=world.clock, least=2) == 6


@pytest.mark.usefixtures("failing")
def test_a_command_that_raises_is_one_line_that_names_the_system(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["failing", "sweep"]) == 0
    fails["command"] = raising(ValueError("a defect\nof mine"))
    assert run(["failing", "sweep", "--path", "x"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(
        "[BROKEN_SYSTEM] The system 'failing' failed at its command 'sweep': ValueError: a defect of mine. Next: Report"
    )
    assert said.count("\n") == 1 and "BUCKETCATALOG_TRACEBACK=1" in said
    monkeypatch.setenv("BUCKETCATALOG_TRACEBACK", "1")
    assert run(["failing", "sweep"]) == 1
    assert "in sweep" in capsys.readouterr().err


@pytest.mark.usefixtures("failing")
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InvalidOption("No.", next_step="Ask."), 2, "[INVALID_OPTION] No. Next: Ask.\n"),
        (FileNotFoundError(2, "No file", "x"), 1, "[OS] "),
    ],
)
def test_a_command_that_says_what_its_user_did_wrong_says_that(
    capsys: pytest.CaptureFixture[str], error: Exception, code: int, said: str
) -> None:
    fails["command"] = raising(error)
    assert run(["failing", "sweep"]) == code
    assert capsys.readouterr().err.startswith(said)


def test_the_traceback_of_what_a_system_raised_is_printed_for_its_author(
    failing: dict[str, Callable[[], Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from bucketcatalog import Catalog

    with Catalog(tmp_path / "c").writer("w") as writer, writer.transaction() as tx:
        tx.put("failing.things", {"k": "a", "n": 1})
    failing["column"] = raising(ValueError("of mine"))
    asked = ["export", str(tmp_path / "c"), "w", str(tmp_path / "w.parquet")]
    assert run(asked) == 1
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setenv("BUCKETCATALOG_TRACEBACK", "1")
    assert run(asked) == 1
    assert "in failing_column" in capsys.readouterr().err


def test_one_broken_system_keeps_nobody_from_another(world: World, failing: dict[str, Callable[[], Any]]) -> None:
    failing["names"] = raising(RuntimeError("away"))
    assert Registry().writes("failing.things") is None
    with pytest.warns(CatalogWarning, match="RuntimeError: away"):
        assert "w" in world.snapshot().tables
