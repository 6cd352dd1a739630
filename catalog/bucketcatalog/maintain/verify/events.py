"""Whether the events of a transaction can be read: decoded by their tables' definitions, which may leave out what their writer went by."""

from __future__ import annotations

from ...errors import UNREADABLE
from ...format.authority import Definitions
from ...format.held import revision
from ...format.transactions import Transaction, event_of
from ...log.files import LogFiles
from ...model import paths
from ...model.cuts import Ref
from ...model.misfits import misfit_at
from ...state.tail import inline_events, misfitting
from .checkpoints import check_block
from .findings import Finding, unreadable


def events_of_one(files: LogFiles, definitions: Definitions, ref: Ref) -> list[Finding]:
    """What is wrong with the events that one transaction holds."""
    writer, head = ref
    name, held = paths.transaction(writer, files.database, head), (revision(writer, head.revision),)
    try:
        transaction = files.transaction(writer, head)
    except UNREADABLE as error:  # since it was read before
        return [unreadable(error, "TRANSACTION", name, *held)]
    unfit = _misfits(transaction, name, definitions)
    found = [Finding("MISFIT_EVENTS", name, why, held) for why in unfit.values()]
    blocks = [place for place in transaction.blocks if place.header.table not in unfit]
    found += [finding for place in blocks for finding in check_block(files.store, place, definitions)]
    for table, actions in inline_events([transaction]).items():
        if table not in definitions:
            found.append(Finding("UNDEFINED_TABLE", name, f"It has events of table {table!r}, which nothing defines.", held))
        elif table not in unfit and definitions.contradiction(table) is None:
            try:
                for _, _, action in actions:
                    event_of(action, definitions[table], name)
            except UNREADABLE as error:
                found.append(unreadable(error, "EVENTS", name, *held))
    return found


def _misfits(transaction: Transaction, name: str, definitions: Definitions) -> dict[str, str]:
    """The tables that the transaction has events of by a definition that is left out, and why."""
    tables = {action.table for action in transaction.actions} | {place.header.table for place in transaction.blocks}
    tables |= {segment.run.table for segment in transaction.segments}
    usable = sorted(table for table in tables & definitions.keys() if definitions.contradiction(table) is None)
    found = {table: misfit_at(definitions[table].misfits, transaction.stamp) for table in usable}
    return {table: misfitting(name, table, misfit).message for table, misfit in found.items() if misfit is not None}
