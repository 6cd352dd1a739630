"""Snapshots: one cut of one database, read as often as one likes.

A snapshot never changes: whatever is committed after it was taken, its rows, look-ups, listings and version stay the same.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .base import IndexCache, TableBase
from .codec.descriptors import core_tables
from .cut import Cut
from .errors import InvalidOption, UnknownTable
from .facts import NO_TRANSACTIONS, Facts, concat, one_chunk
from .filters import Where
from .keys import KeyRange, encode_key, encode_keys
from .listing import Page, list_page
from .log.files import LogFiles
from .log.view import View
from .metadata import METADATA_TABLES, MetadataScan
from .planning import EventBlock
from .reading import Part, empty_rows, read_slice
from .render import output_schema, render
from .replay.tail import event_blocks, inline_facts
from .scan import Scan
from .schema import merge_tables
from .surface import storage_row
from .tables import Table

DELETED_PREFIX = "deleted_"
_FEW_KEYS = 64


class Snapshot:
    """A database at one cut. ``version`` names it for good, until it is pruned."""

    def __init__(self, files: LogFiles, view: View) -> None:
        self._files = files
        self.view = view
        self._indexes = IndexCache(files.store, files.database)
        self._bases: dict[str, TableBase] = {}

    @property
    def database(self) -> str:
        """The database's name."""
        return self.view.database

    @property
    def version(self) -> str:
        """The cut as text; give it as ``version`` to read the same again."""
        return str(self.view.cut)

    @property
    def cut(self) -> Cut:
        """The cut."""
        return self.view.cut

    @property
    def watermark(self) -> datetime.datetime:
        """Everything with an earlier commit time is in the snapshot: times before it are settled."""
        return datetime.datetime.fromtimestamp(self.view.watermark / 1e6, datetime.UTC)

    @cached_property
    def definitions(self) -> Mapping[str, Table]:
        """The tables by name: the core's, and those that the log and the checkpoints define."""
        stored = [table for checkpoint in self.view.checkpoints for table in checkpoint.tables]
        stored += [table for transaction in self.view.tail for table in transaction.tables]
        return merge_tables([*core_tables().values(), *stored])

    @property
    def tables(self) -> list[str]:
        """What can be scanned: tables, their tombstones as ``deleted_...``, and what is known about the catalog itself."""
        kept = [f"{DELETED_PREFIX}{name}" for name, table in self.definitions.items() if table.keeps_tombstones]
        return sorted({*self.definitions, *kept, *METADATA_TABLES})

    def table(self, name: str) -> Table:
        """The definition of a table, or ``UnknownTable``."""
        table = self.definitions.get(name)
        if table is None:
            raise UnknownTable(
                f"There is no table {name!r} in database {self.database!r}.", next_step=f"Choose one of {', '.join(self.tables)}."
            )
        return table

    def scan(self, table: str, *, columns: Sequence[str] | None = None, where: Where | None = None) -> Scan | MetadataScan:
        """Read a table, its tombstones (``deleted_...``), or one about the catalog.

        ``where`` maps columns to a value, a list of values, None or ``prefix(...)``. ``InvalidOption`` names a column that is not there.
        """
        if table in METADATA_TABLES:
            return MetadataScan(self, table, columns=columns, where=where or {})
        tombstones = table not in self.definitions and table.startswith(DELETED_PREFIX)
        definition = self.table(table.removeprefix(DELETED_PREFIX) if tombstones else table)
        return Scan(self.base(definition.name), tombstones=tombstones, columns=columns, where=where or {})

    def get(self, table: str, **key: Any) -> dict[str, Any] | None:
        """The live row under a key, given by its key columns, or None."""
        definition = self.table(table)
        row = storage_row(definition, key, key_only=True)
        encoded = encode_key(definition, {c.name: row[c.field_name] for c in definition.key_columns})
        found = self.find(table, pa.array([encoded], pa.binary()), Part.LIVE)
        if not len(found):
            return None
        shown: dict[str, Any] = render(found, definition, output_schema(definition)).to_pylist()[0]
        return shown

    def list(
        self,
        table: str,
        *,
        prefix: str = "",
        delimiter: str | None = None,
        marker: str | None = None,
        limit: int = 1000,
        **key: Any,
    ) -> Page:
        """One page of a table in key order (bytes of UTF-8), below the leading key columns given.

        ``marker`` is exclusive. With a ``delimiter``, names that share what lies between ``prefix`` and its next occurrence make one
        group, which counts as one row against ``limit``. ``next_marker`` is None on the last page.
        """
        definition = self.table(table)
        *leading, last = definition.key
        if sorted(key) != sorted(leading):
            raise InvalidOption(
                f"A listing of table {table!r} needs {', '.join(leading) or 'no key column'}.",
                next_step=f"Give these; {last!r} is what is listed.",
            )
        return list_page(self.base(table), key, prefix, delimiter, marker, limit)

    def base(self, name: str) -> TableBase:
        """The blocks and the tail of a table."""
        if name not in self._bases:
            self._bases[name] = TableBase(
                self._files.store,
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
        return event_blocks(self._files.store, self.view.tail, self.definitions)

    def find(self, table: str, keys: pa.Array, part: Part) -> Facts:
        """The state rows of ``part`` under these encoded keys."""
        base = self.base(table)
        if len(keys) <= _FEW_KEYS:
            ranges = [KeyRange(key, key + b"\x00") for key in sorted(set(keys.to_pylist()))]
        else:
            bounds = pc.min_max(keys).as_py()
            ranges = [KeyRange(bounds["min"], bounds["max"] + b"\x00")]
        pieces = []
        for piece in base.plan(ranges, only_live=part is Part.LIVE):
            facts = read_slice(base.store, base.table, piece, part)
            pieces.append(
                facts
                if len(keys) <= _FEW_KEYS
                else facts.filter(pc.is_in(one_chunk(encode_keys(base.table, facts.rows)), value_set=keys))
            )
        return concat(pieces) if pieces else Facts(NO_TRANSACTIONS, empty_rows(base.table))

    @property
    def files(self) -> LogFiles:
        """The log that the snapshot was taken of."""
        return self._files
