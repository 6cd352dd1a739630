"""Answers to questions as they are printed: tables with sizes for people, all columns as JSON lines or CSV for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ..errors import InvalidOption
from .output import Row, print_csv, print_rows, rows_of, size, write

if TYPE_CHECKING:
    import pyarrow as pa

    from ..query.reads import InBatches

_SIZES = frozenset({"bytes", "content_length", "wasted_bytes"})


@dataclass(frozen=True)
class Form:
    """How an answer is to be printed, and how many rows of it. ``InvalidOption`` for two forms at once."""

    as_json: bool = False
    as_csv: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise InvalidOption("--json and --csv are two forms.", next_step="Leave one out.")

    @property
    def is_for_people(self) -> bool:
        """Whether it is a table, which has some of the columns."""
        return not self.as_json and not self.as_csv


def places_of(rows: pa.Table) -> list[str]:
    """The columns that tell people what rows are about: buckets, owners too where there are several, and prefixes where there are any."""
    owner = ["owner"] if len(rows["owner"].unique()) > 1 else []
    return ["bucket", *owner, *(["prefix"] if "prefix" in rows.column_names else [])]


def print_answer(
    found: pa.Table | InBatches,
    columns: Sequence[str],
    form: Form,
    *,
    nothing: str,
    after: str | None = None,
    summary: Mapping[str, Any] | None = None,
) -> None:
    """Rows for people as a table of ``columns`` with a last line ``after`` it, for programs with all there is.

    With a ``summary`` JSON lines have a ``section``: those of rows, and one of the summary.
    """
    names, batches = found.schema.names, found.to_batches()
    if form.as_csv:
        print_csv(_first(batches, form.limit), found.schema)
        return
    if form.as_json:
        rows: Iterable[Row] = islice(rows_of(batches), form.limit)
        if summary is not None:
            rows = _with_sections(rows, summary)
        print_rows(rows, names, as_json=True, nothing=nothing)
        return
    needed = {*columns, *({"bucket_id"} if "bucket_id" in names else ())}
    count = print_rows(_readable(islice(rows_of(batches, needed), form.limit)), columns, as_json=False, nothing=nothing)
    if after is not None and (count or summary is not None):
        write(after)


def _first(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows; no more batches are read than have them."""
    left = limit
    for batch in batches:
        yield batch if left is None else batch.slice(0, left)
        if left is not None and (left := left - len(batch)) <= 0:
            return


def _with_sections(rows: Iterable[Row], summary: Mapping[str, Any]) -> Iterator[Row]:
    for row in rows:
        yield {"section": "group", **row}
    yield {"section": "summary", **summary}


def _readable(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Sizes with units and costs to the cent; the id of a bucket that nothing gives a name; examples as places."""
    for row in rows:
        shown: dict[str, Any] = {
            name: size(value) if name in _SIZES and value is not None else value for name, value in row.items()
        }
        if "cost" in shown:
            shown["cost"] = f"{shown['cost']:,.2f}"
        if shown.get("bucket") is None and "bucket_id" in shown:
            shown["bucket"] = shown["bucket_id"]
        if "examples" in shown:
            shown["examples"] = ", ".join(f"{each['bucket'] or '?'}: {each['name']}" for each in shown["examples"])
        yield shown
