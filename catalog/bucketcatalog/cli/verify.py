"""``verify`` and ``repair``: what is wrong with a catalog, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from ..console.findings import finding_facts, print_findings
from ..console.options import CatalogArgument, Database, Json, Maintainer, StorageOption, Yes, open_catalog
from ..console.output import finish, number, print_facts, visible, write
from ..console.progress import progress_line
from ..errors import CorruptionError, ForkDetected
from ..format.held import Held
from ..maintain.repair import Repair
from ..maintain.verify.findings import Finding


def verify(
    catalog: CatalogArgument,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare what each checkpoint says with what its transactions say, too.")
    ] = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Read everything and say what is wrong, one line each; ends with 1 if there is an error among it.

    Example: bucketcatalog verify s3://lake/inventory
    """
    opened = open_catalog(catalog, storage_option)
    left_out: list[Finding] = []
    with progress_line("verifying") as tell:
        found = opened.verify(database=database, deep=deep, tell=tell, left_out=left_out.append)
        print_findings(found, what=opened.url, as_json=as_json, facts=_facts, then=left_out)


def _facts(finding: Finding) -> dict[str, Any]:
    return {**finding_facts(finding), "held": [shown_held(held) for held in finding.held]}


def shown_held(held: Held) -> dict[str, Any]:
    """What was held, for JSON: keys as hexadecimal digits and, where their table is known, as the values of their columns."""
    if held.table is None:
        return {"writer": held.writer, "first_revision": held.first_revision, "last_revision": held.last_revision}
    return {
        "table": held.table,
        "rows": held.rows,
        "first_key": held.first_key.hex(),
        "last_key": held.last_key.hex(),
        "shown": None if held.shown is None else list(held.shown),
    }


def repair(
    catalog: CatalogArgument,
    join: Annotated[
        list[str] | None,
        typer.Option("--join", metavar="W", help="Join the branches of this writer's timeline, as that writer; repeat it."),
    ] = None,
    void: Annotated[
        list[str] | None,
        typer.Option("--void", metavar="W@N", help="Treat this commit from the future as if it were not there; repeat it."),
    ] = None,
    set_aside: Annotated[
        list[str] | None,
        typer.Option(
            "--set-aside",
            metavar="FILE",
            help="Go on without the events of this bad transaction, W@N, or all of writer W; repeat it.",
        ),
    ] = None,
    take_in: Annotated[
        list[str] | None,
        typer.Option("--take-in", metavar="FILE", help="Read this file again, which was set aside and is whole; repeat it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Set aside what is not bad, too.")] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare what each checkpoint says with what its transactions say first.")
    ] = False,
    yes: Yes = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Mend what is wrong as far as what is left allows, and say what is lost. A dry run unless --yes.

    That ends with 1 if something is lost, or a branch that was to be joined is not.

    Example: bucketcatalog repair s3://lake/inventory --yes
    """
    opened = open_catalog(catalog, storage_option)
    with progress_line("repairing") as tell:
        made = opened.repair(
            database=database,
            join=join or (),
            void=void or (),
            set_aside=set_aside or (),
            take_in=take_in or (),
            force=force,
            deep=deep,
            writer=writer,
            dry_run=not yes,
            tell=tell,
        )
    if as_json:
        print_facts(_facts_of(made), as_json=True)
    else:
        _print_repaired(made)
    finish()
    if yes:
        _refuse_unmended(made, opened.url, join or ())


def _facts_of(made: Repair) -> dict[str, Any]:
    lost = [_facts(finding) for finding in made.lost]
    actions = [asdict(action) for action in made.actions]
    return {"database": made.database, "actions": actions, "lost": lost, "undecided": made.undecided}


def _refuse_unmended(made: Repair, url: str, join: Sequence[str]) -> None:
    """``CorruptionError`` where something is lost, ``ForkDetected`` where a branch that was to be joined is not."""
    if made.lost:
        raise CorruptionError(
            f"{number(len(made.lost), 'thing')} of {visible(url)} {'is' if len(made.lost) == 1 else 'are'} lost.",
            next_step="Do what stands at the end of each line, and run it again; or read on with --ignore-corruption.",
        )
    left = next((a for a in made.actions if a.what == "join" and a.subject in join and not a.done), None)
    if left is not None:
        raise ForkDetected(f"The timeline of {left.subject!r} was not joined: {left.obstacle}", next_step="Run it again then.")


def _print_repaired(made: Repair) -> None:
    for action in made.actions:
        outcome = f"Not done: {action.obstacle}" if action.obstacle else "Done." if action.done else "Would be done with --yes."
        write(visible(f"{action.what} {action.subject}: {action.why} {outcome}"))
    if made.undecided:
        write("What else is to be done is decided then, by the same run.")
    for finding in made.lost:
        write(visible(f"lost: {finding}"))
    if not made.actions and not made.lost:
        write("Nothing is wrong.")


COMMANDS = {"verify": verify, "repair": repair}
