"""The one place that prints results: tables and facts for people, JSON and CSV for programs.

For people, characters that a terminal could act on, and backslashes, are shown as escapes. In JSON values are those of
``model.json_values``.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from ..model.json_values import plain as plain
from ..model.json_values import to_json as to_json

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST_PAGE = 1_000
_WIDEST = 60
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "\\": r"\\"}
Row = Mapping[str, Any]


class PipeClosed(Exception):
    """Nobody reads standard output any more."""


def visible(text: str) -> str:
    r"""Text that a terminal shows as it is, on one line: a newline as ``\n``, an escape as ``\x1b``, a backslash as ``\\``.

    Messages are passed through too; there a backslash is most often part of an escape already, so only names double theirs.
    """
    return text if text.isprintable() else "".join(char if char.isprintable() else _escape(char) for char in text)


def visible_name(name: str) -> str:
    """A name as ``visible``, so that no two names look the same."""
    return visible(name.replace("\\", "\\\\"))


def _escape(char: str) -> str:
    code = ord(char)
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def rows_of(batches: Iterable[pa.RecordBatch | pa.Table], columns: Collection[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of Arrow data as ``plain`` values, of these ``columns`` alone where nobody looks at others."""
    for whole in batches:
        batch = whole if columns is None else whole.select([name for name in whole.schema.names if name in columns])
        kinds = dict(zip(batch.schema.names, batch.schema.types, strict=True))
        for row in batch.to_pylist():
            yield {name: plain(value, kinds[name]) for name, value in row.items()}


def write(text: str) -> None:
    """A line to standard output, in UTF-8 whatever the locale is; ``PipeClosed`` where nobody reads it."""
    try:
        buffer = getattr(sys.stdout, "buffer", None)
        if buffer is None:
            sys.stdout.write(text + "\n")
        else:
            buffer.write((text + "\n").encode("utf-8", "surrogatepass"))
    except BrokenPipeError:
        raise PipeClosed from None


def finish() -> None:
    """Send what is buffered; ``PipeClosed`` where nobody reads it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise PipeClosed from None


def print_rows(rows: Iterable[Row], columns: Sequence[str], *, as_json: bool, nothing: str) -> int:
    """Rows as JSON lines with everything in them, or as a table of these columns (``nothing``: what to say of none); how many."""
    count = 0
    if as_json:
        for row in rows:
            write(to_json(row))
            count += 1
    else:
        count = _print_table(iter(rows), columns, nothing)
    finish()
    return count


def print_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> None:
    """All columns as CSV with a line of names before them, in the words of exported files."""
    from pyarrow import csv

    from ..format.texts import csv_rows, csv_schema

    options = csv.WriteOptions(include_header=False)
    for rows in chain([None], batches):
        text = io.BytesIO()
        if rows is None:
            csv.write_csv(csv_schema(schema).empty_table(), text)
        else:
            csv.write_csv(csv_rows(rows), text, options)
        if lines := text.getvalue().decode().removesuffix("\n"):
            write(lines)
    finish()


def _print_table(rows: Iterator[Row], columns: Sequence[str], nothing: str) -> int:
    """Columns are as wide as the first thousand rows need, within reason; what is longer is shown whole, the last is never padded."""
    page = [[_cell(row.get(name)) for name in columns] for row in islice(rows, _FIRST_PAGE)]
    if not page:
        write(nothing)
        return 0
    heads = [name.lstrip("_").upper() for name in columns]
    widths = [min(_WIDEST, max(_width(cells[at]) for cells in (heads, *page))) for at in range(len(columns))]
    count = 0
    write(_line(heads, widths))
    for cells in chain(page, ([_cell(row.get(name)) for name in columns] for row in rows)):
        write(_line(cells, widths))
        count += 1
    return count


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [_padded(cell, width) for cell, width in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*padded, cells[-1]]).rstrip()


def _width(cell: str) -> int:
    """How many columns of a terminal a cell takes."""
    if cell.isascii():
        return len(cell)
    from rich.cells import cell_len

    return cell_len(cell)


def _padded(cell: str, width: int) -> str:
    fill = " " * (width - _width(cell))
    return fill + cell if cell.isascii() and cell.isdigit() else cell + fill


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return visible_name(value)
    return visible(to_json(value)) if isinstance(value, (dict, list, bool)) else str(value)


def print_facts(facts: Row, *, as_json: bool) -> None:
    """One result: a JSON document, or a line for each fact that there is."""
    if as_json:
        write(to_json(facts))
    else:
        shown = {name.strip("_").replace("_", " "): value for name, value in facts.items() if value not in (None, [], {})}
        width = max(map(len, shown), default=0)
        for name, value in shown.items():
            write(f"{name:{width}}  {_cell(value)}".rstrip())
    finish()


def size(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000:
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} PB"


def number(count: int, one: str, many: str | None = None) -> str:
    """A number and what it counts: ``1 object``, ``2,000 objects``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
