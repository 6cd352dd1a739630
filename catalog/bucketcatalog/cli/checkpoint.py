"""``checkpoint``: once, or with ``--every`` a compaction that goes on until a signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import Annotated, Any

import typer

from .. import clock
from ..catalog import Catalog
from ..checkpoint.publish import CheckpointResult
from ..console.options import CatalogArgument, Database, Json, StorageOption, open_catalog
from ..console.output import finish, number, print_facts, size, to_json, visible, write
from ..console.progress import progress_line
from ..errors import InvalidOption
from ..maintain.compactor import Compactor, Policy, Round
from ..model.names import COMPACTOR_PREFIX, host_writer, is_data_writer, writer_id
from ..model.times import parse_age, shown_age, shown_time
from ..query.snapshot import Snapshot
from ..write.host_turn import host_turn

_Covering = Annotated[
    str | None,
    typer.Option(
        "--writer",
        "-w",
        metavar="W",
        help="The writer whose timeline is covered; with --all-writers, who writes.  [default: the only one; compactor-HOST]",
    ),
]
_Every = Annotated[
    str | None,
    typer.Option("--every", metavar="AGE", help="With --all-writers: go on, and look each 30s, 5m or so, until a signal."),
]


def checkpoint(
    catalog: CatalogArgument,
    all_writers: Annotated[bool, typer.Option("--all-writers", help="Cover every writer, not one alone.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Merge and write everything again, whatever has changed.")] = False,
    writer: _Covering = None,
    every: _Every = None,
    min_transactions: Annotated[
        int | None, typer.Option("--min-transactions", metavar="N", min=1, help="With --every: due once so many wait.")
    ] = None,
    min_bytes: Annotated[
        int | None, typer.Option("--min-bytes", metavar="B", min=1, help="With --every: due once they have so many bytes.")
    ] = None,
    max_age: Annotated[
        str | None, typer.Option("--max-age", metavar="AGE", help="With --every: due once one waits for so long.")
    ] = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Write the state as a checkpoint, so that readers need not replay what led there; with --every again and again.

    Example: bucketcatalog checkpoint ./catalog --all-writers
    """
    limits = (min_transactions, min_bytes, max_age)
    if every is None and any(limit is not None for limit in limits):
        raise InvalidOption("A checkpoint is written at once without --every.", next_step="Add --every, or leave the limits out.")
    if every is not None and (full or not all_writers):
        raise InvalidOption("--every covers every writer, step by step.", next_step="Add --all-writers, and leave --full out.")
    opened = open_catalog(catalog, storage_option)
    snapshot = opened.snapshot(database=database)
    name = snapshot.database
    if every is not None:
        compact(opened, name, writer, policy_of(*limits), every=every, as_json=as_json)
        return
    named = writer if all_writers else _covered_writer(snapshot, writer)
    with (
        progress_line("writing a checkpoint") as tell,
        host_turn(opened.store, name, named=named or None, default=host_writer(COMPACTOR_PREFIX)) as chosen,
        opened.writer(chosen, database=name) as held,
    ):
        written = held.checkpoint(scope="all" if all_writers else "own", full=full, progress=tell)
    print_checkpoint(written, chosen, as_json=as_json)


def print_checkpoint(written: CheckpointResult | None, writer: str, *, as_json: bool) -> None:
    """What a checkpoint of ``writer`` made, if there was anything to write."""
    if as_json:
        print_facts({"written": written is not None, "writer": writer, **(asdict(written) if written else {})}, as_json=True)
        return
    if written is None:
        write("Nothing has been committed since the last checkpoint.")
    else:
        reused = f" written, {size(written.reused_bytes)} used again" if written.reused_bytes else ""
        write(
            f"{number(written.rows, 'row')} in {number(written.segments, 'segment')}, {size(written.bytes)}{reused}: {written.name}"
        )
    finish()


def _covered_writer(snapshot: Snapshot, named: str | None) -> str:
    """The writer whose timeline is to be covered: the one named, which must have one, else the only one there is."""
    if named is not None and writer_id(named) in snapshot.cut.heads:
        return named
    if named is not None:
        raise InvalidOption(
            f"No writer {named!r} has committed to the database {snapshot.database!r}.",
            next_step=f"Name one of {', '.join(snapshot.cut.heads)} with --writer, or cover all with --all-writers.",
        )
    writers = [writer for writer in snapshot.cut.heads if is_data_writer(writer)]
    if len(writers) != 1:
        raise InvalidOption(
            f"The database {snapshot.database!r} has {number(len(writers), 'writer')}: {', '.join(writers)}.",
            next_step="Name one with --writer, or cover all with --all-writers.",
        )
    return writers[0]


COMMANDS = {"checkpoint": checkpoint}


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def policy_of(transactions: int | None, size_: int | None, age: str | None) -> Policy:
    """The policy that the options of the command make."""
    return Policy(transactions, size_, None if age is None else parse_age(age))


def compact(catalog: Catalog, database: str, writer: str | None, policy: Policy, *, every: str, as_json: bool) -> None:
    """Report each round on a line of its own; returns once SIGTERM or SIGINT has ended it, the second of which ends the process."""
    seconds = parse_age(every) / 1e6
    if seconds < 1:
        raise InvalidOption(f"A compaction cannot look every {every!r}.", next_step="Give --every at least 1s.")
    compactor = Compactor(catalog, database, policy=policy, every=seconds, writer=writer)
    with _stopping(compactor):
        for done in compactor.rounds():
            write(to_json(_document(done, compactor.writer)) if as_json else _line(done))
            finish()


@contextmanager
def _stopping(compactor: Compactor) -> Iterator[None]:
    before = {which: signal.getsignal(which) for which in _SIGNALS}

    def restore() -> None:
        for which, handler in before.items():
            signal.signal(which, handler)

    def stop(which: int, frame: FrameType | None) -> None:
        restore()
        compactor.stop()

    for which in _SIGNALS:
        signal.signal(which, stop)
    try:
        yield
    finally:
        restore()


def _document(done: Round, writer: str) -> dict[str, Any]:
    waiting = {f"waiting_{name}": value for name, value in asdict(done.waiting).items()}
    waiting["waiting_seconds"] = waiting.pop("waiting_age") / 1e6
    document = {"round": done.number, "time": shown_time(clock.now_us()), "writer": writer, **waiting, "due": done.due}
    if done.error is not None:
        return {**document, "written": False, "code": done.error.code, "error": done.error.message}
    return {**document, "written": done.result is not None, **(asdict(done.result) if done.result else {})}


def _line(done: Round) -> str:
    waiting = done.waiting
    found = f"{number(waiting.transactions, 'transaction')} of {size(waiting.bytes)} waiting for {shown_age(waiting.age)}"
    if done.error is not None:
        what = str(done.error)
    elif done.result is None:
        what = "nothing due"
    else:
        made = done.result
        what = f"{size(made.bytes)} written, {size(made.reused_bytes)} used again, in {made.seconds:.1f} s: {made.name}"
    return visible(f"{shown_time(clock.now_us())}  {found}; {what}")
