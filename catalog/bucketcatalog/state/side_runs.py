"""Side runs: what a checkpoint keeps beside the rows of a table's lowest level, made of these rows as they are merged.

Each kind is a module of its own, which says what it keeps, how it is read and what it is good for. Whoever writes them, or looks whether
they are right, goes through all that a table declares. No answer needs one, though one may be the answer: what is not kept is found in
the rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

from ..format.headers import BlockClass
from ..format.segments import RunRows
from ..model.facts import Facts
from ..model.tables import Table
from .contents import TableState
from .orders import order_runs
from .sums import sum_runs


class SideRun(Protocol):
    """One of them, as a table declares it. ``classes`` are those of the rows that it is made of."""

    @property
    def classes(self) -> Collection[BlockClass]: ...

    @property
    def described(self) -> str:
        """What the declaration calls it, as ``sum 'bytes'``."""

    @property
    def shape(self) -> Table:
        """The table that its rows make in blocks. Its name has the name of the run and all that decides what the rows mean."""

    def keeping(self) -> Keeping:
        """Makes the run of rows that are met."""

    def differs(self, state: TableState) -> bool:
        """Whether one is kept and is not what the rows of the lowest level make."""


class Keeping(Protocol):
    """A side run in the making."""

    def add(self, rows: Facts) -> Iterator[RunRows]:
        """Take in rows of its classes, each once; gives rows of the run where so much is held that it has to be written."""

    def rest(self) -> Iterator[RunRows]:
        """What is left."""


def side_runs(table: Table) -> list[SideRun]:
    """Those that checkpoints keep of a table as it is declared now."""
    return [*sum_runs(table), *order_runs(table)]


def shape_of_blocks(table: Table, block_table: str) -> Table | None:
    """The table of blocks of a side run of ``table``; None where they are of one that is not declared now."""
    return next((run.shape for run in side_runs(table) if run.shape.name == block_table), None)
