"""Rows by definitions that are left out of their table now, and that whoever wrote or folded them knew: whole, and not to be read.

A definition that arrives late, or is dated back, can leave out one by which checkpoints have folded rows. Nothing is damaged by that: a
block is held against the definitions that whoever refers to it knew, and what these come to by now is said of the table.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from ...format.authority import Definitions
from ...format.checkpoints import Checkpoint
from ...format.definitions import core_tables
from ...format.headers import BlockPlace
from ...log.files import LogFiles
from ...log.witnesses import definitions_within
from ...model import paths
from ...model.paths import FileKind
from ...model.tables import split_side
from ...state.tail import misfitting, unknown_misfit
from .checkpoints import check_block
from .findings import Finding


class AsKnown:
    """Blocks checked by the ``definitions`` of all, or by those that one of the ``checkpoints``, or a writer, that has them knew."""

    def __init__(self, files: LogFiles, definitions: Definitions, checkpoints: Iterable[Checkpoint]) -> None:
        self._files = files
        self._definitions = definitions
        self._checkpoints = {paths.checkpoint(c.writer, files.database, c.head): c for c in checkpoints}
        self._known: dict[str, Definitions] = {}
        self._merging = threading.Lock()

    def check(self, place: BlockPlace, by: Sequence[str]) -> list[Finding]:
        """What is wrong with a block that the files ``by`` refer to, whoever of them is asked."""
        found = self._check(place, self._definitions)
        if not found or not _leaves_out(self._definitions, split_side(place.header.table)[0]):
            return found
        return [] if any(not self._check(place, known) for known in self._known_by(by)) else found

    def folded_otherwise(self) -> Iterator[Finding]:
        """The tables of which checkpoints have rows by a definition that is left out now, in the words in which readers are told."""
        definitions = self._definitions
        for table in sorted(table for table in definitions if _leaves_out(definitions, table)):
            for name, checkpoint in self._checkpoints.items():
                has_rows = any(run.table == table for run in checkpoint.runs)
                misfit = unknown_misfit(checkpoint, definitions[table], definitions.left_out(table)) if has_rows else None
                if misfit is not None:
                    yield Finding("MISFIT_ROWS", table, misfitting(name, table, misfit).message)

    def _check(self, place: BlockPlace, definitions: Definitions) -> list[Finding]:
        return list(check_block(self._files.store, place, definitions))

    def _known_by(self, by: Sequence[str]) -> Iterator[Definitions]:
        """What the makers of these checkpoints knew, and the writers of these transactions; each is merged once for all blocks."""
        writers = {paths.writer_of(name) for name in by if paths.kind_of(name) is FileKind.TRANSACTION}
        for name in (*(name for name in by if name in self._checkpoints), *sorted(writers)):
            with self._merging:
                if name not in self._known:
                    self._known[name] = self._merged(name)
            yield self._known[name]

    def _merged(self, name: str) -> Definitions:
        """What the maker of a checkpoint knew that is named, or a writer."""
        if name in self._checkpoints:
            return definitions_within(self._checkpoints[name])
        return Definitions(core_tables().values(), (each for each in self._definitions.stamped if each.writer == name))


def _leaves_out(definitions: Definitions, table: str) -> bool:
    is_read = table in definitions and definitions.contradiction(table) is None
    return is_read and len(definitions[table].misfits) > 0
