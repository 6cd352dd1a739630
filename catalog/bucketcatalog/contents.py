"""The contents of a database at one cut: its tables' definitions, and for each what its state is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from .base import IndexCache, TableBase
from .codec.descriptors import core_tables
from .cut import Cut
from .errors import UnknownTable
from .facts import NO_TRANSACTIONS, Facts, concat
from .log.files import LogFiles
from .log.view import View
from .planning import EventBlock
from .reading import Part, empty_rows, read_slice
from .replay.tail import event_blocks, inline_facts
from .schema import merge_tables
from .tables import Table


class Contents:
    """What a view of the log holds. Nothing is read before it is asked for, and everything once."""

    def __init__(self, files: LogFiles, view: View, definitions: Mapping[str, Table] | None = None) -> None:
        self.files = files
        self.view = view
        self._definitions = definitions
        self._indexes = IndexCache(files.store, files.database)
        self._bases: dict[str, TableBase] = {}

    @property
    def database(self) -> str:
        """The database's name."""
        return self.view.database

    @property
    def cut(self) -> Cut:
        """The cut."""
        return self.view.cut

    @cached_property
    def definitions(self) -> Mapping[str, Table]:
        """The tables by name: those given, else the core's and those that the log and the checkpoints define."""
        if self._definitions is not None:
            return self._definitions
        stored = [table for checkpoint in self.view.checkpoints for table in checkpoint.tables]
        stored += [table for transaction in self.view.tail for table in transaction.tables]
        return merge_tables([*core_tables().values(), *stored])

    def table(self, name: str) -> Table:
        """The definition of a table, or ``UnknownTable``."""
        table = self.definitions.get(name)
        if table is None:
            raise UnknownTable(
                f"There is no table {name!r} in database {self.database!r}.",
                next_step=f"Choose one of {', '.join(sorted(self.definitions))}, or see the snapshot's tables.",
            )
        return table

    def base(self, name: str) -> TableBase:
        """The blocks and the tail of a table."""
        if name not in self._bases:
            self._bases[name] = TableBase(
                self.files.store,
                self.table(name),
                self.view.checkpoints,
                self._indexes,
                self._tail.get(name),
                self._events.get(name, ()),
            )
        return self._bases[name]

    @cached_property
    def _tail(self) -> dict[str, Facts]:
        return inline_facts(self.view.tail, self.definitions)

    @cached_property
    def _events(self) -> Mapping[str, Sequence[EventBlock]]:
        return event_blocks(self.files.store, self.view.tail, self.definitions)

    def find(self, table: str, keys: pa.Array, part: Part) -> Facts:
        """The state rows of ``part`` under these encoded keys."""
        base = self.base(table)
        distinct = pc.unique(keys)
        plan = base.plan_keys(distinct.take(pc.sort_indices(distinct)), only_live=part is Part.LIVE) if len(keys) else []
        pieces = [read_slice(base.store, base.table, piece, part) for piece in plan]
        return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(base.table))
