"""What counts of a data table at a cut: its files, and what of their rows does not count. A function of the state, which needs no time.

A file that somebody added *is* where its rows were added. One that compaction has made has the rows of such files, its *origins*. However
many compactions ran at once, and whatever was removed meanwhile:

1. what a predicate says of an origin does not count, unless compaction had read the predicate: then it has no such rows;
2. the other rows of an origin count once: in the file that was added last of the live ones that have them.

So compaction needs no turn of its own among writers, and what it has made of files changes nothing of which rows count; but in a table with
a key what newer rows had replaced is gone, and a deletion of these that it had not read brings nothing back. That it is the last
matters: a compaction may end a file because another one has its rows, while somebody ends that one too; but who does has made a file of
it, which is added later than both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptionError, InvalidOption
from ...model.arrays import Mask, Positions, one_chunk
from ...query.row_tests import Comparison
from ...query.snapshot import Snapshot
from ...wording import either
from ...write.transaction import WriteTransaction
from . import SYSTEM
from .errors import KeyConflict
from .files import FILES, SCHEMAS
from .predicates import Predicate, predicates_of
from .schemas import Merged, OnConflict, Seen, merged
from .statistics import TABLE as STATISTICS
from .statistics import columns_of

_COLUMNS = (
    "partition",
    "chunk",
    "path",
    "size",
    "rows",
    "row_groups",
    "schema",
    "key_columns",
    "first_clock",
    "last_clock",
    "added",
    "origins",
    "applied",
    "bloom_filters",
    "_version",
)


def as_declared(snapshot: Snapshot) -> Snapshot:
    """The same cut, its tables of files as this release declares them: a catalog of an older one lacks what has come to them since."""
    for table in SYSTEM.tables.values():
        if table.name in snapshot.definitions and snapshot.table(table.name).definition != table.definition:
            snapshot = snapshot.known_as(table)
    return snapshot


@dataclass(frozen=True)
class Live:
    """The files of a data table, in the order of partition and chunk, and the predicates about it."""

    table: str
    files: pa.Table
    predicates: Sequence[Predicate]
    schemas: pa.Table

    @classmethod
    def of(cls, snapshot: Snapshot, table: str) -> Live | None:
        """Those at the snapshot's cut; None where no file was ever added to such a table."""
        if SCHEMAS not in snapshot.definitions:
            return None
        snapshot = as_declared(snapshot)
        schemas = snapshot.scan(SCHEMAS, columns=["schema", "arrow"], where={"table": table}).to_arrow()
        if not len(schemas):
            return None
        found = snapshot.scan(FILES, columns=_COLUMNS, where={"table": table}).to_arrow()
        return cls(table, found.combine_chunks(), predicates_of(snapshot, table), schemas)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that tell rows apart, none where nothing does; ``KeyConflict`` where files say different things of it."""
        files = self.counting
        if not pc.any(pc.greater(pc.list_value_length(one_chunk(files["key_columns"])), 0)).as_py():
            return ()
        said = [tuple(key or ()) for key in files["key_columns"].to_pylist()]
        different = next((at for at, key in enumerate(said) if key != said[0]), None)
        if different is not None:
            one, other = (files["path"][at].as_py() for at in (0, different))
            raise KeyConflict(
                f"Files of data table {self.table!r} have different keys: {one} says {list(said[0])}, {other} {list(said[different])}.",
                next_step="Remove one of the two, and append its rows with the other's key.",
            )
        return said[0] if said else ()

    def refuse_outside_of_key(self, conditions: Iterable[Comparison]) -> None:
        """``InvalidOption`` for a condition, in a table with a key, on a column that is none of it: newer rows may have replaced such."""
        key = self.key_columns
        outside = [each.column for each in conditions if key and each.column not in key]
        if outside:
            raise InvalidOption(
                f"Rows of data table {self.table!r} are told apart by {', '.join(key)}, and {outside[0]!r} is none of these.",
                next_step="Name the rows by columns of the key: what other columns say may have been replaced by newer rows.",
            )

    @cached_property
    def by_schema(self) -> dict[str, pa.Schema]:
        """The schemas by their ids."""
        return {row["schema"]: pa.ipc.read_schema(pa.py_buffer(row["arrow"])) for row in self.schemas.to_pylist()}

    def schema(self, id_: str, path: str) -> pa.Schema:
        """A schema by its id, which the row of the file ``path`` says; ``CorruptionError`` where nothing says any more what it is."""
        found = self.by_schema.get(id_)
        if found is None:
            raise CorruptionError(
                f"Nothing says which columns {path} has: the row of iox.schemas is lost.",
                next_step="Make it anew from the file: "
                + either(
                    "systems.iox.rebuild.rebuild(catalog, adopt=True, dry_run=False).", "bucketcatalog iox rebuild --adopt --yes."
                ),
            )
        return found

    def merged(self, on: OnConflict) -> Merged:
        """The columns of the table, as its files together have them; of one without files those that files have had."""
        if not len(self.counting):
            return merged(self.table, [Seen(id_, schema, "") for id_, schema in self.by_schema.items()], "skip")
        by_age = self.counting.select(["schema", "path"])
        is_one = len(pc.unique(by_age["schema"])) == 1  # then it does not matter which of its files is named
        by_age = by_age.slice(0, 1) if is_one else by_age.take(pc.sort_indices(self._oldest.take(pa.array(self.left))))
        first = by_age.group_by("schema", use_threads=False).aggregate([("path", "first")])
        seen = [
            Seen(row["schema"], self.schema(row["schema"], row["path_first"]), row["path_first"]) for row in first.to_pylist()
        ]
        return merged(self.table, seen, on)

    @cached_property
    def is_compacted(self) -> pa.Array:
        """Of each file whether compaction has made it."""
        return pc.greater(pc.fill_null(pc.list_value_length(one_chunk(self.files["origins"])), 0), 0)

    @cached_property
    def claims(self) -> pa.Table:
        """Which rows each file has: ``file``, its position, and ``chunk``, where they were added; one row for each origin."""
        files, compacted = np.arange(len(self.files)), np.asarray(self.is_compacted)
        own = pa.table(
            {"file": pa.array(files[~compacted]), "chunk": one_chunk(self.files["chunk"]).filter(pa.array(~compacted))}
        )
        origins = one_chunk(self.files["origins"])
        of_others = pa.table({"file": pc.list_parent_indices(origins).cast(pa.int64()), "chunk": pc.list_flatten(origins)})
        return pa.concat_tables([own, of_others]).combine_chunks()

    @cached_property
    def _oldest(self) -> pa.Array:
        """Of each file the oldest chunk whose rows it has: the first that was drawn, wherever compaction has moved them since."""
        found = self.claims.group_by("file").aggregate([("chunk", "min")]).sort_by("file")
        return one_chunk(found["chunk_min"])

    @cached_property
    def without(self) -> pa.Table:
        """Which rows of a file do not count at all: ``file`` and ``chunk``."""
        removed = [self.concerned_by(each) for each in self.predicates if each.is_removal]
        gone = [claims.filter(self.is_compacted.take(claims["file"])) for claims in removed]
        if not gone:
            return self._claimed_elsewhere(self.claims)
        removals = pa.concat_tables(gone).group_by(["file", "chunk"]).aggregate([])
        return pa.concat_tables(
            [removals, self._claimed_elsewhere(self.claims.join(removals, ["file", "chunk"], join_type="left anti"))]
        )

    def _claimed_elsewhere(self, claims: pa.Table) -> pa.Table:
        """Of these claims those on rows that a file which was added later has."""
        counts = claims.group_by("chunk").aggregate([([], "count_all")])
        several = counts.filter(pc.greater(counts["count_all"], 1))["chunk"]
        if not len(several):
            return claims.slice(0, 0)
        shared = claims.filter(pc.is_in(claims["chunk"], value_set=one_chunk(several)))
        of = self.files.select(["added", "chunk"]).take(shared["file"]).rename_columns(["added", "of"])
        ranked = shared.append_column("added", of["added"]).append_column("of", of["of"])
        order = pc.sort_indices(ranked, [("chunk", "ascending"), ("added", "descending"), ("of", "descending")])
        ordered = shared.take(order)
        chunks = one_chunk(ordered["chunk"])
        is_first = pc.not_equal(chunks, pa.concat_arrays([pa.array([""], chunks.type), chunks.slice(0, len(chunks) - 1)]))
        return ordered.filter(pc.invert(is_first))

    @cached_property
    def is_left(self) -> Mask:
        """Of each file whether some of its rows may count."""
        found = np.zeros(len(self.files), dtype=bool)
        found[self.left] = True
        return found

    @property
    def conditions(self) -> tuple[Predicate, ...]:
        """The predicates without the files that they speak of, for who reads files of which that is known."""
        return tuple(replace(each, chunks=()) for each in self.predicates)

    @cached_property
    def counted(self) -> dict[int, tuple[str, ...]]:
        """By file the origins of its rows that count."""
        return by_file(self.claims.join(self.without, ["file", "chunk"], join_type="left anti"))

    @cached_property
    def spoken_of(self) -> dict[int, list[str]]:
        """By file the predicates that speak of rows of it, applied or not."""
        found: dict[int, list[str]] = {}
        for each in self.predicates:
            about = self.claims.filter(pc.is_in(self.claims["chunk"], value_set=pa.array(each.chunks, pa.string())))
            for at in about["file"].unique().to_pylist():
                found.setdefault(at, []).append(each.id)
        return found

    def where_added(self, files: pa.Table) -> list[str]:
        """Where rows of some of the files were added that count: the files themselves, and what they were made of."""
        positions = pc.index_in(one_chunk(files["chunk"]), value_set=one_chunk(self.files["chunk"])).to_pylist()
        counted = {chunk for at in positions for chunk in self.counted.get(at, ())}
        return sorted({*files["chunk"].to_pylist(), *counted})

    def concerned_by(self, predicate: Predicate) -> pa.Table:
        """The rows that a predicate speaks of and that it has not been applied to: ``file`` and ``chunk``."""
        claims = self.claims
        about = claims.filter(pc.is_in(claims["chunk"], value_set=pa.array(predicate.chunks, pa.string())))
        done = self._applied_in(predicate)
        return about.filter(pc.invert(pc.is_in(about["file"], value_set=one_chunk(done)))) if len(done) else about

    def without_rows_of(self, predicate: Predicate) -> pa.Array:
        """The chunks of the files to which a predicate has been applied."""
        return one_chunk(self.files["chunk"].take(self._applied_in(predicate)))

    def _applied_in(self, predicate: Predicate) -> pa.ChunkedArray:
        return self._applied.filter(pc.equal(self._applied["predicate"], predicate.id))["file"]

    @cached_property
    def _applied(self) -> pa.Table:
        applied = one_chunk(self.files["applied"])
        return pa.table({"file": pc.list_parent_indices(applied).cast(pa.int64()), "predicate": pc.list_flatten(applied)})

    def end(self, tx: WriteTransaction, files: pa.Table) -> None:
        """End files in a transaction, these versions and no others, and forget what statistics say of them."""
        named = files.select(["partition", "chunk", "_version"])
        tx.delete(FILES, named.append_column("table", pa.repeat(self.table, len(files))))
        pairs = [(id_, name) for id_, schema in self.by_schema.items() for name in columns_of(schema)]
        columns = pa.table(
            {
                "schema": pa.array([id_ for id_, _ in pairs], pa.string()),
                "column": pa.array([name for _, name in pairs], pa.string()),
            }
        )
        keys = files.select(["partition", "chunk", "schema"]).join(columns, "schema", join_type="inner").drop_columns(["schema"])
        if len(keys):
            tx.delete(STATISTICS, keys.append_column("table", pa.repeat(self.table, len(keys))))

    @cached_property
    def counting(self) -> pa.Table:
        """The files of which some rows may count."""
        return self.files if len(self.left) == len(self.files) else self.files.take(pa.array(self.left))

    @cached_property
    def left(self) -> Positions:
        """The positions of files of which some rows may count."""
        if not len(self.without):
            return np.arange(len(self.files))
        lost = self.without.group_by("file").aggregate([([], "count_all")])
        has = self.claims.group_by("file").aggregate([([], "count_all")])
        both = has.join(lost, "file", right_suffix="_lost", join_type="left outer")
        kept = both.filter(pc.greater(both["count_all"], pc.fill_null(both["count_all_lost"], 0)))
        positions: Positions = np.sort(np.asarray(kept["file"]))
        return positions


def by_file(pairs: pa.Table) -> dict[int, tuple[str, ...]]:
    """The chunks of each file, of pairs of ``file`` and ``chunk``."""
    grouped = pairs.group_by("file").aggregate([("chunk", "list")])
    return {at: tuple(chunks) for at, chunks in zip(grouped["file"].to_pylist(), grouped["chunk_list"].to_pylist(), strict=True)}
