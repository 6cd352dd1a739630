"""``prune``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from .. import limits
from ..console.options import CatalogArgument, Database, Json, Maintainer, StorageOption, Yes, open_catalog
from ..console.output import finish, number, print_facts, print_rows, size, visible, write
from ..console.progress import progress_line
from ..maintain.prune import PruneResult
from ..maintain.verdict import Prunable
from ..model.times import shown_age, shown_time
from ..write.pins import Pin
from .gc import PIN_AGE, PinAge


def prune(
    catalog: CatalogArgument,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Only history that is older, such as 7d.", show_default=False)
    ],
    keep: Annotated[int, typer.Option("--keep", metavar="N", min=1, help="Keep N checkpoints of every writer's cut.")] = 1,
    grace: Annotated[
        str, typer.Option("--grace", metavar="AGE", help="How long before it is deleted it is published what may go.")
    ] = shown_age(limits.PRUNE_GRACE),
    pin_age: PinAge = PIN_AGE,
    yes: Yes = False,
    force: Annotated[bool, typer.Option("--force", help="Take ages that writers or readers may need.")] = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Delete history that is needed for nothing that stays: publish what may go, and a grace period later delete it.

    Example: bucketcatalog prune s3://lake/inventory --older-than 30d --yes
    """
    with progress_line("pruning") as tell:
        result = open_catalog(catalog, storage_option).prune(
            older_than,
            keep=keep,
            grace=grace,
            pin_age=pin_age,
            database=database,
            writer=writer,
            dry_run=not yes,
            force=force,
            tell=lambda count: tell(f"{number(count, 'file')} deleted"),
        )
    if as_json:
        print_facts(_document(result), as_json=True)
        return
    rows = [*_rows(result.files, "deleted" if result.done else "now"), *_rows(result.waiting, "later")]
    print_rows(rows, ["when", "kind", "bytes", "why", "name"], as_json=False, nothing=_nothing(result))
    for line in _sums(result):
        write(line)
    finish()


def _rows(files: Iterable[Prunable], when: str) -> list[dict[str, Any]]:
    return [{"when": when, "name": f.name, "kind": f.kind.value, "bytes": f.bytes, "why": f.why} for f in files]


def _nothing(result: PruneResult) -> str:
    """That nothing goes, and what keeps all there is."""
    kept = (f"{number(each.files, 'file')}, {size(each.bytes)}: {each.keeper.why}" for each in result.kept)
    return "\n".join(["Nothing is to be deleted. What keeps the files:", *kept] if result.kept else ["Nothing is to be deleted."])


def _document(result: PruneResult) -> dict[str, Any]:
    times = {name: getattr(result, name) for name in ("horizon_time", "published", "due")}
    return {
        "done": result.done,
        "horizon": result.horizon,
        **{name: None if time is None else shown_time(time) for name, time in times.items()},
        "needs_checkpoint": result.needs_checkpoint,
        "pins": [_pin(pin) for pin in result.pins],
        "kept": [{"by": s.keeper.value, "why": s.keeper.why, "files": s.files, "bytes": s.bytes} for s in result.kept],
        "tags": list(result.tags),
        "unreadable": list(result.unreadable),
        "bytes": result.bytes,
        "files": [{"name": f.name, "kind": f.kind.value, "bytes": f.bytes, "why": f.why} for f in result.files],
        "waiting": [{"name": f.name, "kind": f.kind.value, "bytes": f.bytes, "why": f.why} for f in result.waiting],
    }


def _pin(pin: Pin) -> dict[str, Any]:
    return {"name": pin.name, "writer": pin.writer, "version": pin.version, "given": shown_time(pin.commit_time)}


def _sums(result: PruneResult) -> Iterable[str]:
    """What was done or would be, in sum, and what comes next."""
    did = "" if result.done else "would be "
    if result.files:
        yield f"{number(len(result.files), 'file')}, {size(result.bytes)} {did}deleted."
    if result.waiting:
        total = size(sum(file.bytes for file in result.waiting))
        when = "the grace period after it is published" if result.due is None else f"from {shown_time(result.due)} on"
        yield f"{number(len(result.waiting), 'file')}, {total} can go {when}; run it again then."
    if result.tags:
        yield f"{number(len(result.tags), 'version')} of tags {did}given a checkpoint."
    if result.unreadable:
        yield f"Tags name what is gone, or no version: {', '.join(result.unreadable)}. Drop them: bucketcatalog tag CATALOG NAME --drop."
    for pin in result.pins:
        yield f"The pin {pin.name!r} of {pin.writer!r}, given last at {shown_time(pin.commit_time)}, keeps what was committed after it."
    if result.needs_checkpoint:
        yield f"A checkpoint of every writer {did}written. What it covers can go once it is as old as --older-than asks, with 0s at once."
    if result.horizon is not None and result.horizon_time is not None:
        yield f"History stays from {shown_time(result.horizon_time)} on: {visible(result.horizon)}"
    if not result.done:
        yield "Nothing was written or deleted; --yes does it."


COMMANDS = {"prune": prune}
