"""Who decides what a table is, of several who have defined it.

Anybody may define a table and add columns to one. Names, options and what a column means are a maintainer's to say, by what it declares;
in the core's tables the release's; where neither has, the writer's whose definition is the oldest. A definition of anybody else counts
as older than these: what only it has is added, also a parent, or that data is somebody else's, by which data is kept. Where it does not
fit it is left out, with what its writer has written by it since.

A writer gives its transactions their stamps, and can date one back. So definitions that were witnessed, of which a compactor or a
maintainer says that it had read them, come before the others, in the order in which that was said.

All of this is a function of the definitions, the witnesses and their stamps, whatever order they come in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .. import limits
from ..errors import BucketCatalogError, IncompatibleTable
from ..model.misfits import Misfit
from ..model.names import is_compactor, is_maintainer
from ..model.tables import Table
from ..model.times import LAST_TIME
from .bounds import UNDECODABLE, why
from .evolution import merge, merge_all
from .records import Witness

_Stamp = tuple[int, str, int, bytes]
_Key = tuple[str, bytes, str, bool]
_Rank = tuple[_Stamp, _Stamp]
_UNMERGEABLE: tuple[type[Exception], ...] = (BucketCatalogError, *UNDECODABLE)


@dataclass(frozen=True, slots=True)
class Definition:
    """A table as one writer defined it: ``first`` and ``stamp`` are those of its first and latest transaction that said so.

    Of a maintainer's that are not ``declared`` nothing counts but what they add: it had read them.
    """

    stamp: _Stamp
    table: Table
    first: _Stamp = (0, "", 0, b"")
    declared: bool = False

    def __post_init__(self) -> None:
        if not self.first[1]:
            object.__setattr__(self, "first", self.stamp)

    @property
    def writer(self) -> str:
        """Whose it is."""
        return self.stamp[1]

    @property
    def key(self) -> _Key:
        """What is the same in the definitions that count as one."""
        return self.table.name, self.table.definition, self.writer, self.declared


def combined(stamped: Iterable[Definition]) -> tuple[Definition, ...]:
    """Each definition of each writer once, from its first stamp to its latest, in the order of the latest ones."""
    found: dict[_Key, Definition] = {}
    for definition in stamped:
        known = found.get(definition.key, definition)
        found[definition.key] = replace(known, stamp=max(known.stamp, definition.stamp), first=min(known.first, definition.first))
    counted = _counted(found.values())
    return tuple(sorted(counted, key=lambda definition: (definition.stamp, definition.table.name, definition.first)))


def _counted(definitions: Collection[Definition]) -> Iterable[Definition]:
    """Those that count: of each plain writer the first ones, for all of them together stand in every checkpoint of everybody."""
    size = sum(len(definition.table.definition) for definition in definitions)
    if len(definitions) <= limits.PLAIN_DEFINITIONS and size <= limits.DEFINITION_BYTES:  # as nearly always
        return definitions
    had: dict[str, tuple[int, int]] = {}
    counted = []
    for definition in sorted(definitions, key=lambda each: (each.first, each.table.name, each.table.definition)):
        if not (is_compactor(definition.writer) or is_maintainer(definition.writer)):
            count, size = had.get(definition.writer, (0, 0))
            had[definition.writer] = count, size = count + 1, size + len(definition.table.definition)
            if count > limits.PLAIN_DEFINITIONS or size > limits.DEFINITION_BYTES:
                continue
        counted.append(definition)
    return counted


@lru_cache(maxsize=256)
def digest_of_definition(definition: bytes) -> bytes:
    """By what a witness names a serialised definition."""
    return hashlib.sha256(definition).digest()


class Definitions(Mapping[str, Table]):
    """The tables of a database by name, each merged from its definitions when it is asked for.

    Definitions count by who made them and in the order in which they were ``witnessed``, then of their stamps, whatever order they come
    in; ``known`` are the release's, and ``last`` newer than all. A table of which they who decide contradict each other raises
    ``IncompatibleTable`` when it is asked for, and no other does. Of anybody else what does not fit is left out: such a table names its
    ``misfits``.
    """

    def __init__(
        self,
        known: Iterable[Table],
        stamped: Iterable[Definition],
        last: Iterable[Table] = (),
        *,
        witnessed: Iterable[Witness] = (),
    ) -> None:
        self._known = {table.name: table for table in known}
        self._last = {table.name: table for table in last}
        self.stamped = combined(stamped)
        self._of: dict[str, list[Definition]] = {}
        for definition in self.stamped:
            self._of.setdefault(definition.table.name, []).append(definition)
        self.witnessed = tuple(sorted(witnessed, key=lambda witness: (witness.stamp, witness.defined_by)))
        self._witnesses: dict[str, list[Witness]] = {}
        for witness in self.witnessed:
            self._witnesses.setdefault(witness.table, []).append(witness)
        self._names = dict.fromkeys([*self._known, *self._of, *self._last])
        self._merged: dict[str, Table] = {}
        self._left_out: dict[str, Mapping[bytes, str]] = {}

    def __getitem__(self, name: str) -> Table:
        if name not in self._merged:
            if name not in self._names:
                raise KeyError(name)
            self._merged[name] = self._judged(name)
        return self._merged[name]

    def _judged(self, name: str) -> Table:
        given = self._of.get(name, [])
        deciding = self._deciding(name)
        rest = [definition for definition in given if definition not in deciding]
        parts = [self._known[name]] if name in self._known else []
        parts += [definition.table for definition in deciding]
        left_out: dict[bytes, str] = {}
        if parts:
            decided = _with_others(_together(parts), self._in_turn(name, rest), left_out)
            is_maintained = name in self._known or any(definition.declared for definition in deciding)
            _, writer, revision, _ = min((definition.first for definition in deciding), default=(0, "", 0, b""))
            by = "" if is_maintained else f"{writer}@{revision}"  # which may be what is bad, dated back
            decided = replace(decided, misfits=tuple(_misfits(rest, left_out, by)), is_maintained=is_maintained)
        self._left_out[name] = left_out
        if name not in self._last:
            return decided
        return _with(decided, self._last[name]) if parts else self._last[name]

    def _deciding(self, name: str) -> list[Definition]:
        """The definitions of a table that decide what it is, the latest last, beside the release's."""
        given = self._of.get(name, [])
        declared = [definition for definition in given if definition.declared]
        if declared or name in self._known:
            return declared
        first = self.first_definer(name)
        return [definition for definition in given if definition.writer == first]

    def _in_turn(self, name: str, rest: Iterable[Definition]) -> list[Definition]:
        """The definitions that only add something, in the order in which they do: what was witnessed, the first definer's, the others'."""
        first, ranks = self.first_definer(name), self._ranks(name)

        def turn(definition: Definition) -> tuple[bool, bool, _Rank, bytes]:
            shape = definition.table.definition
            rank = ranks.get(digest_of_definition(shape)) if ranks else None
            is_others = rank is None and definition.writer != first
            return rank is None, is_others, rank or (definition.first, definition.first), shape

        return sorted(rest, key=turn)

    def _ranks(self, name: str) -> dict[bytes, _Rank]:
        """Of each definition of a table that was witnessed its place among these, which come before the others."""
        found: dict[bytes, _Rank] = {}
        for witness in self._witnesses.get(name, ()):
            found.setdefault(witness.digest, (witness.stamp, witness.defined_by))
        return found

    def first_definer(self, name: str) -> str | None:
        """The writer that has defined a table first; None for the release's, and for what no transaction has defined."""
        given = self._of.get(name, [])
        if not given or name in self._known:
            return None
        writers = {definition.writer for definition in given}
        witnessed = (of for witness in self._witnesses.get(name, ()) if (of := witness.defined_by[1]) in writers)
        return next(witnessed, None) or min(given, key=lambda definition: definition.first).writer

    def decided_by(self, name: str, writer: str) -> bool:
        """Whether names and options of a table are among what this writer decides, when it has not declared it as a maintainer."""
        return name not in self or (not self._is_declared(name) and writer == self.first_definer(name))

    def _is_declared(self, name: str) -> bool:
        return any(definition.declared for definition in self._of.get(name, []))

    def has_room(self, table: Table, writer: str) -> bool:
        """Whether it would count if a writer were to define a table so now."""
        new = _defined_now(table, writer)
        return any(definition.key == new.key for definition in combined([*self.stamped, new]))

    def if_declared(self, table: Table, writer: str) -> Definitions:
        """The tables as they would be if a writer were to declare one so now, of what is defined of that one."""
        of_it = [*self._of.get(table.name, []), _defined_now(table, writer, declared=is_maintainer(writer))]
        known = [self._known[table.name]] if table.name in self._known else []
        return Definitions(known, of_it, witnessed=self._witnesses.get(table.name, ()))

    def holds(self, table: Table) -> bool:
        """Whether somebody has defined a table in these very words."""
        return any(definition.table.definition == table.definition for definition in self._of.get(table.name, []))

    def is_of_release(self, table: Table) -> bool:
        """Whether the release declares a table in these very words."""
        return table.name in self._known and self._known[table.name].definition == table.definition

    def left_out(self, name: str) -> Mapping[bytes, str]:
        """The definitions of a table, serialised, that do not fit it, and why."""
        return self._left_out[name] if self[name] is not None else {}

    def known_as(self, table: Table) -> Definitions:
        """The same tables, one of them as who declares it knows it: with columns that nobody has written yet, and its names for all."""
        return Definitions(self._known.values(), self.stamped, [*self._last.values(), table], witnessed=self.witnessed)

    def usable(self) -> list[Table]:
        """The tables whose definitions fit together, by name."""
        return [self[name] for name in sorted(self) if self.contradiction(name) is None]

    def contradiction(self, name: str) -> str | None:
        """Why a table cannot be used, or None."""
        try:
            self[name]
        except IncompatibleTable as error:
            return error.message
        return None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _defined_now(table: Table, writer: str, *, declared: bool = False) -> Definition:
    return Definition((LAST_TIME, writer, limits.REVISIONS, b""), table, declared=declared)


def _with(older: Table, newer: Table) -> Table:
    """What both declare, as the newer names it; what else is known of the older stays."""
    if older.definition == newer.definition:
        return older
    return replace(merge(older, newer), misfits=older.misfits, is_maintained=older.is_maintained)


def _together(parts: Sequence[Table]) -> Table:
    """What these declare that decide, as the last one names it."""
    distinct = list({part.definition: part for part in reversed(parts)}.values())
    return distinct[0] if len(distinct) == 1 else merge_all(distinct[1:], distinct[0])


def _with_others(decided: Table, others: Sequence[Definition], left_out: dict[bytes, str]) -> Table:
    """The table with what others add to it, in their turn; what does not fit is noted as ``left_out``.

    Of a writer of whom one is left out, what it has said since is not looked at any more: its events could not be read. They are
    merged together, and in halves where one does not fit: a table costs what its definitions say, and not that times their number.
    """
    since: dict[str, _Stamp] = {}

    def add(table: Table, some: Sequence[Definition]) -> Table:
        counted = [each for each in some if each.writer not in since or each.first <= since[each.writer]]
        new = {each.table.definition: each.table for each in counted if each.table.definition not in left_out}
        new.pop(decided.definition, None)
        if not new:
            return table
        try:
            return merge_all(list(new.values()), table)
        except _UNMERGEABLE as error:  # whatever it is: who says it leaves the table to the others
            if len(new) > 1:
                middle = len(some) // 2
                return add(add(table, some[:middle]), some[middle:])
            (said,) = new
            left_out[said] = error.message if isinstance(error, BucketCatalogError) else f"It cannot be merged: {why(error)}."
            for each in (each for each in others if each.table.definition == said):
                since[each.writer] = min(since.get(each.writer, each.first), each.first)
            return table

    return add(decided, others)


def _misfits(rest: Iterable[Definition], left_out: Mapping[bytes, str], decided_by: str) -> Iterator[Misfit]:
    """For each writer of definitions that are left out since when they are."""
    found: dict[str, Misfit] = {}
    for definition in rest:
        why = left_out.get(definition.table.definition)
        if why is not None and (definition.writer not in found or definition.first < found[definition.writer].since):
            found[definition.writer] = Misfit(definition.writer, definition.first, why, decided_by)
    return (found[writer] for writer in sorted(found))
