"""Every store call of a commit and of a checkpoint is a crash point, before and after the call.

After each crash a new process opens the catalog: it finds all that was acknowledged, the interrupted commit whole or not at all, and
goes on. Nothing is lost and nothing doubled. The same with every answer to a put lost. All points are enumerated, none sampled; what is
found after a crash is looked at once for all that have left the same in the store.
"""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from bucketcatalog import Catalog, CommitUnknown, OutcomeUnknown, clock
from bucketcatalog.limits import Limits
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, LostResponses, SimulatedCrash
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore

from ..kit.crash_points import STEPS, Bench, calls, crash, forks, go_on, run, two_writers
from ..kit.ledger import compare
from ..kit.machine.columns import DATABASE
from ..kit.machine.comparing import Comparer
from ..kit.machine.onlooker import EngineReader
from ..kit.machine.steps import Part

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


class LocalBench(Bench):
    """On disk, where copying files is much faster than putting objects."""

    def __init__(self, folder: Path) -> None:
        numbers = itertools.count()
        super().__init__(lambda: LocalStore(folder / str(next(numbers))), two_writers)
        self.folder = folder

    def fill(self, store: Store) -> None:
        """Copy the first store's folder."""
        shutil.copytree(self.folder / "0", store.url)


@pytest.fixture(scope="module", params=["memory", "local", "forks"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    if request.param == "local":
        return LocalBench(tmp_path_factory.mktemp("crash"))
    return Bench(MemoryStore, forks if request.param == "forks" else two_writers)


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_at_any_store_call_loses_and_doubles_nothing(bench: Bench, name: str) -> None:
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    continued: set[int] = set()
    points = [*itertools.product(range(len(calls(bench, step, drafts))), (False, True))]
    committed = sum(crash(bench, step, drafts, at, late=late, continued=continued) for at, late in points)
    assert len(points) >= 10 and len(continued) >= 2
    assert (committed > 0) == (step.transactions > 0)


@pytest.mark.parametrize("name", STEPS)
def test_a_crash_while_a_reader_is_looking_changes_nothing_for_it(bench: Bench, name: str) -> None:
    """A snapshot that was taken before the crash goes on showing what it showed, also when it reads only afterwards.

    What it is shown depends on nothing but what is in the store, which is another after each put.
    """
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    puts = [number for number, (method, _) in enumerate(calls(bench, step, drafts)) if method == "put"]
    assert puts
    for at in puts:
        store, _ = bench.copy()
        snapshot = EngineReader(store, now=clock.now_us).snapshot()
        with pytest.raises(SimulatedCrash):
            run(Failing(store, at=at, after=True), step, drafts)
        Comparer(bench.world, store).part("before the crash", Part.OBJECTS, snapshot, bench.world.timelines.visible())


@pytest.mark.parametrize("landed", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("name", STEPS)
def test_a_lost_response_to_any_put_is_met_with_the_same_bytes(
    bench: Bench, name: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    counting = LostResponses(bench.copy()[0], landed=True, puts=[])
    run(counting, step, drafts)
    for number in range(counting.puts):
        store, ledger = bench.copy()
        flaky = LostResponses(store, landed=landed, puts=[number])
        run(flaky, step, drafts)
        assert flaky.puts == counting.puts + 1
        assert ledger.admit(store, drafts) == step.transactions
        compare(store, ledger)
        if number == 0:  # what comes next depends on nothing but what is in the store, which is the same each time
            go_on(store, ledger, step, drafts, done=step.transactions)


@pytest.mark.parametrize("landed", [False, True], ids=["lost requests", "lost answers"])
@pytest.mark.parametrize("name", STEPS)
def test_a_store_that_never_answers_ends_in_a_typed_error_and_reopening_resolves_it(
    bench: Bench, name: str, landed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monotonic = clock.monotonic
    monkeypatch.setattr("bucketcatalog.clock.sleep", slept.append)
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: monotonic() + sum(slept))
    step = STEPS[name]
    drafts = step.drafts(bench.world)
    store, ledger = bench.copy()
    writer = Catalog(LostResponses(store, landed=landed)).writer(
        step.writer, database=DATABASE, limits=Limits(commit_delay=100_000)
    )
    with pytest.raises((CommitUnknown, OutcomeUnknown)):
        step.act(writer, drafts)
    done = ledger.admit(store, drafts)
    assert done == (landed and not step.segments_first) * step.transactions
    compare(store, ledger)
    go_on(store, ledger, step, drafts, done=done)
