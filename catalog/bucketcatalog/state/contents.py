"""The contents of a database at one cut: its tables' definitions, and for each what its state is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UnknownTable
from ..format.checkpoints import Definition
from ..format.definitions import core_tables
from ..format.evolution import Definitions
from ..log.files import LogFiles
from ..log.segments import Blocks
from ..log.view import View
from ..model.cuts import Cut
from ..model.facts import NO_TRANSACTIONS, Facts, concat
from ..model.tables import Table
from .overlay import Part
from .plan import EventBlock
from .read import empty_rows, read_slice
from .tables import IndexCache, TableBase
from .tail import Action, event_blocks, inline_actions, inline_facts


class Contents:
    """What a view of the log holds. Nothing is read before it is asked for, and everything once."""

    def __init__(self, files: LogFiles, view: View, definitions: Definitions | None = None) -> None:
        self.files = files
        self.view = view
        self._definitions = definitions
        self._blocks = Blocks(files.store, files.losses)
        self._indexes = IndexCache(files.store, files.database, files.losses)
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
    def definitions(self) -> Definitions:
        """The tables by name: those given, else the core's and those that the log and the checkpoints define."""
        if self._definitions is not None:
            return self._definitions
        given = [definition for checkpoint in self.view.checkpoints for definition in checkpoint.definitions]
        given += [Definition(transaction.stamp, table) for transaction in self.view.tail for table in transaction.tables]
        return Definitions(core_tables().values(), given)

    @cached_property
    def names(self) -> list[str]:
        """The names of all tables that are defined or that the log has rows of, sorted."""
        return sorted({*self.definitions, *self._actions, *self._events})

    def table(self, name: str) -> Table:
        """The definition of a table, or ``UnknownTable``."""
        if name in self.definitions:
            return self.definitions[name]
        if name in self._actions or name in self._events:
            raise UnknownTable(
                f"Database {self.database!r} has rows of table {name!r}, which nothing defines.",
                next_step="Restore the transactions of its writers from a copy of the store.",
            )
        raise UnknownTable(
            f"There is no table {name!r} in database {self.database!r}.",
            next_step=f"Choose one of {', '.join(sorted(self.definitions))}, or see the snapshot's tables.",
        )

    def base(self, name: str) -> TableBase:
        """The blocks and the tail of a table."""
        if name not in self._bases:
            table = self.table(name)
            tail = inline_facts(self._actions.get(name, []), table, self.files.losses)
            events = self._events.get(name, ())
            stored = [[(s, run) for s in c.segments for run in s.runs if run.table == name] for c in self.view.checkpoints]
            self._bases[name] = TableBase(self._blocks, table, stored, self._indexes, tail, events)
        return self._bases[name]

    @cached_property
    def _actions(self) -> Mapping[str, list[Action]]:
        return inline_actions(self.view.tail)

    @cached_property
    def _events(self) -> Mapping[str, Sequence[EventBlock]]:
        return event_blocks(self.files.store, self.view.tail, self.files.losses)

    def find(self, table: str, keys: pa.Array, part: Part) -> Facts:
        """The state rows of ``part`` under these encoded keys."""
        base = self.base(table)
        distinct = pc.unique(keys)
        plan = base.plan_keys(distinct.take(pc.sort_indices(distinct)), only_live=part is Part.LIVE) if len(keys) else []
        pieces = [read_slice(base.blocks, base.table, piece, part) for piece in plan]
        return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(base.table))
