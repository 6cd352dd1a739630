"""Snapshots, reads and plans as a notebook shows them: what the log and the indexes tell, no row is read for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import pyarrow as pa

from ..format.headers import TOMBSTONES, BlockClass
from ..model.html import Html, html_facts, html_folded, html_or_why, html_table
from ..model.times import shown_time
from ..state.contents import Contents

LIVE = frozenset({BlockClass.LIVE})
_MOST_ROWS = 100
_HEADS = ("name", "kind", "live rows", "tombstones", "events that no checkpoint covers")
Cells = tuple[object, ...]


class Plan(str):
    """What ``explain`` says: text of a few lines, in a notebook a row for each."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        first, *lines = (line.partition(": ")[::2] for line in self.split("\n"))
        return html_table(f"plan: {first[0]}", ("", first[1]), lines) if lines else html_table(f"plan: {self}", (), ())


def read_html(schema: pa.Schema, explain: Callable[[], str] | None) -> str:
    """The columns of a read and, where it has one, its plan."""
    plan = "" if explain is None else html_or_why(lambda: Plan(explain())._repr_html_())
    return f"{plan}{_columns(schema)}"


def _columns(schema: pa.Schema) -> Html:
    table = html_table("columns", ("column", "type", "null"), [(each.name, str(each.type), each.nullable) for each in schema])
    return html_folded(f"{len(schema):,} columns: {', '.join(schema.names)}", table)


def rows_html(name: str, rows: Callable[[], pa.Table]) -> str:
    """The first rows of a table that is at hand."""

    def shown() -> Html:
        table = rows()
        more = f", the first {_MOST_ROWS} of {len(table):,} rows" if len(table) > _MOST_ROWS else ""
        return html_table(
            f"table {name}{more}", table.schema.names, [list(row.values()) for row in table[:_MOST_ROWS].to_pylist()]
        )

    return html_or_why(shown)


def contents_html(contents: Contents, beside: Callable[[], Iterable[Cells]]) -> str:
    """A cut, and what can be read at it: its tables, and then the names and kinds of what there is ``beside`` them.

    Rows are counted where one fold holds them all; where events wait to be folded it is told how many.
    """
    view, cut = contents.view, contents.cut
    heads = sum(map(len, cut.heads.values()))
    facts = {
        "catalog": contents.files.store.url,
        "version": str(cut),
        "newest commit": shown_time(cut.newest_commit_time) if heads else None,
        "watermark": shown_time(view.watermark),
        "writers": len(cut.heads),
        "heads": heads,
        "open forks": sum(fork.open for fork in view.forks) or None,
        "checkpoints": len(view.checkpoints),
        "transactions that no checkpoint covers": len(view.tail),
        "files that cannot be read": len({loss.file for loss in contents.files.on_damage.found}) or None,
    }
    tables = html_or_why(lambda: html_table("tables", _HEADS, [*_tables(contents), *beside()]))
    return f"{html_facts(f'database {contents.database}', facts)}{tables}"


def _tables(contents: Contents) -> Iterator[Cells]:
    """A row for each table, or what keeps it from being read."""
    for name in sorted(contents.definitions):
        state = html_or_why(partial(contents.state, name))
        if isinstance(state, Html):
            yield name, state
            continue
        live, ended = (state.folded_rows(classes) for classes in (LIVE, TOMBSTONES))
        kept = _known(ended) if state.table.keeps_tombstones else "none kept"
        yield name, "table", _known(live), kept, state.new_rows


def _known(rows: int | None) -> object:
    return "counted when read" if rows is None else rows
