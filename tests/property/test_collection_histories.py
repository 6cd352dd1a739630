"""Random histories of writes, renames, tags, checkpoints and maintenance, with a real deleter: a model says exactly what may be deleted.

The model knows versions by their puts and ends, in the order in which they were committed, and nothing of boundaries but what a run says it
went by. After every collection the data that is there and the tombstones that are shown are those of the model, neither more nor less.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from bucketcatalog import Catalog, DataCollected
from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.maintain.gc.reap import Reaped
from bucketcatalog.store.memory import MemoryStore

from ..kit.chance import ANY_SPEED, SEARCHES, count, seed_of

SECOND, HOUR = 1_000_000, 3_600_000_000
GRACE = 24 * HOUR
OWNER = str(uuid.uuid5(uuid.NAMESPACE_OID, "owner"))
OURS, THEIRS, NOBODYS = (str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in ("ours", "theirs", "nobody's"))
BUCKETS = {"ours": OURS, "theirs": THEIRS}
PLACES = [("objects", OURS, "a"), ("objects", OURS, "b"), ("object_versions", OURS, "a")]
PLACES += [("objects", THEIRS, "a"), ("object_versions", THEIRS, "a"), ("objects", NOBODYS, "a")]
Place = tuple[str, str, str]


@dataclass
class Version:
    """A version as the model knows it."""

    place: Place
    data: str | None
    name: str
    ended: int | None = None
    purged: bool = False

    @property
    def reference(self) -> tuple[str, str] | None:
        """Where its data lies; None where it names none."""
        return None if self.data is None else (self.place[1], self.data)


def key(place: Place) -> dict[str, Any]:
    _, bucket, name = place
    return {"owner": OWNER, "bucket_id": bucket, "name": name} | ({"version_id": "1"} if place[0] == "object_versions" else {})


class Histories(RuleBasedStateMachine):
    """Writers that see each other, a compactor, and a maintainer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000_000
        self.store = MemoryStore(clock=lambda: self.now)
        self.catalog = Catalog(self.store)
        self.versions: list[Version] = []
        self.data: set[tuple[str, str]] = set()
        self.tags: dict[str, set[str]] = {}
        self.buckets: dict[str, int | None] = {}

    def teardown(self) -> None:
        count("collection")

    @initialize()
    def begin(self) -> None:
        rows = [{"owner": OWNER, "name": name, "id": id_, "external": id_ == THEIRS} for name, id_ in BUCKETS.items()]
        self.commit("w", ("put", "buckets", rows))
        self.buckets = dict.fromkeys(BUCKETS)

    def commit(self, writer: str, *calls: tuple[Any, ...], **options: Any) -> Any:
        self.now += SECOND
        with self.catalog.writer(writer, clock=lambda: self.now) as held, held.transaction() as tx:
            for method, *arguments in calls:
                getattr(tx, method)(*arguments, **(options if method == "put" else {}))
        return tx.committed

    def live(self, place: Place) -> Version | None:
        return next((v for v in self.versions if v.place == place and v.ended is None), None)

    def put(self, place: Place, data: str | None, committed: Any) -> None:
        if (before := self.live(place)) is not None:
            before.ended = committed.commit_time
        self.versions.append(Version(place, data, f"{committed.uuid}:0"))

    @rule(place=st.sampled_from(PLACES), writer=st.sampled_from(["w", "v"]), has_data=st.booleans())
    def upload(self, place: Place, writer: str, has_data: bool) -> None:
        data = str(uuid.uuid5(uuid.NAMESPACE_OID, str(len(self.versions)))) if has_data else None
        if data is not None:
            self.data.add((place[1], data))
        self.put(place, data, self.commit(writer, ("put", place[0], {**key(place), "id": data})))

    @precondition(lambda self: any(v.data for v in self.versions))
    @rule(number=st.integers(0, 99), where=st.integers(0, 99), writer=st.sampled_from(["w", "v"]))
    def name_again(self, number: int, where: int, writer: str) -> None:
        """A copy within the bucket and table, or a row that is put back; also of data that may be gone, which is refused."""
        named = [v for v in self.versions if v.data]
        of = named[number % len(named)]
        places = [place for place in PLACES if place[:2] == of.place[:2]]
        place = places[where % len(places)]
        source = {**key(of.place), "_version": of.name}
        try:
            committed = self.commit(writer, ("put", place[0], {**key(place), "id": of.data}), data_of=source)
        except DataCollected:
            assert of.ended is not None
            return
        self.put(place, of.data, committed)

    @precondition(lambda self: any(self.live(place) for place in PLACES))
    @rule(number=st.integers(0, 99))
    def name_in_the_other_table(self, number: int) -> None:
        """The other table names the data of what is live."""
        live = [v for place in PLACES if (v := self.live(place)) is not None and v.place[1] != NOBODYS]
        if live:
            of = live[number % len(live)]
            table = "object_versions" if of.place[0] == "objects" else "objects"
            place = (table, of.place[1], "a")
            self.put(place, of.data, self.commit("v", ("put", table, {**key(place), "id": of.data})))

    @rule(place=st.sampled_from(PLACES), writer=st.sampled_from(["w", "v"]))
    def delete(self, place: Place, writer: str) -> None:
        committed = self.commit(writer, ("delete", place[0], key(place)))
        if (ended := self.live(place)) is not None:
            ended.ended = committed.commit_time

    @rule(name=st.sampled_from(sorted(BUCKETS)))
    def delete_bucket(self, name: str) -> None:
        committed = self.commit("w", ("delete", "buckets", {"owner": OWNER, "name": name}))
        if self.buckets[name] is None:
            self.buckets[name] = committed.commit_time

    @rule(writer=st.sampled_from(["w", "v", "compactor-1"]))
    def checkpoint(self, writer: str) -> None:
        self.now += SECOND
        with self.catalog.writer(writer, clock=lambda: self.now) as held:
            held.checkpoint(scope="all" if writer == "compactor-1" else "own")

    @rule(name=st.sampled_from(["x", "y"]), drops=st.booleans())
    def tag(self, name: str, drops: bool) -> None:
        self.now += SECOND
        with self.catalog.writer("maintainer-1", clock=lambda: self.now) as held:
            if name in self.tags and drops:
                held.drop_tag(name)
                del self.tags[name]
            else:
                held.tag(name, replace=True)
                self.tags[name] = {v.name for v in self.versions if v.ended is None}

    @rule(hours=st.sampled_from([1, 7]))
    def pass_by(self, hours: int) -> None:
        self.now += hours * HOUR

    @rule(waits=st.booleans())
    def reap(self, waits: bool) -> None:
        """Reap now, or as it is done in a day and a half: then all that have ended before have their rows ended."""
        before = self.now
        for hours in (25, 7) if waits else (0,):
            self.now += hours * HOUR
            done = self.reap_once()
        ended = [at for at in self.buckets.values() if at is not None]
        assert not waits or all(at <= done.boundary for at in ended if at <= before)

    def reap_once(self) -> Reaped:
        self.now += SECOND
        done: Reaped = self.catalog.reap(dry_run=False, writer="maintainer-1", clock=lambda: self.now)
        limit = done.boundary
        assert limit <= self.now - GRACE
        dead = {BUCKETS[name] for name, ended in self.buckets.items() if ended is not None and ended <= limit}
        for version in self.versions:
            if version.ended is None and version.place[1] in dead:
                version.ended = self.now
        shown = {(t, *place) for t in ("objects", "object_versions") for place in self.shown(t)}
        assert shown == {v.place for v in self.versions if v.ended is None}
        return done

    @rule(waits=st.booleans())
    def maintain(self, waits: bool) -> None:
        """Collect now, or as it is done in a day and a half."""
        for hours in (25, 7, 7) if waits else (0,):
            self.now += hours * HOUR
            self.collect()

    def collect(self) -> None:
        self.now += SECOND
        before, looked = set(self.data), self.now
        done: Collected = self.catalog.collect(dry_run=False, deleter=self.deleter, writer="maintainer-1", clock=lambda: self.now)
        if not done.boundary:
            assert self.data == before and not done.purged
            return
        limit = min(done.boundary, looked - GRACE)
        pinned = set().union(*self.tags.values())
        old = [v for v in self.versions if v.ended is not None and v.ended <= limit and v.name not in pinned]
        needing = [v for v in self.versions if v not in old or v.place[1] == THEIRS]
        garbage = {v.reference for v in old if not v.purged} - {v.reference for v in needing} - {None}
        assert before - self.data == garbage & before
        for version in old:
            version.purged = True

    def deleter(self, batch: pa.Table) -> list[bool]:
        self.data -= {(row["bucket_id"], row["id"]) for row in batch.to_pylist()}
        return [True] * len(batch)

    def shown(self, table: str) -> list[tuple[str, str]]:
        found = self.catalog.snapshot().scan(table, columns=["bucket_id", "name"]).to_arrow().to_pylist()
        return sorted((row["bucket_id"], row["name"]) for row in found)

    @invariant()
    def what_is_live_tagged_or_external_has_its_data(self) -> None:
        pinned = set().union(*self.tags.values())
        kept = [v for v in self.versions if v.ended is None or v.name in pinned or v.place[1] == THEIRS]
        assert {v.reference for v in kept} - {None} <= self.data

    @invariant()
    def tombstones_are_those_that_were_not_collected(self) -> None:
        for table in ("objects", "object_versions"):
            ended = [v for v in self.versions if v.place[0] == table and v.ended is not None and not v.purged]
            assert self.shown(f"deleted_{table}") == sorted(v.place[1:] for v in ended)


def test_what_is_collected_is_what_the_model_allows() -> None:
    search = seed(seed_of("collection"))(Histories)
    cases = SEARCHES["collection"].cases_of_a_test
    run_state_machine_as_test(search, settings=settings(ANY_SPEED, max_examples=cases, stateful_step_count=30))
