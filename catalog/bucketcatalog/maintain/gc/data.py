"""Where the data of a reference lies, and who deletes it.

``s3://data/{owner}/{bucket_id}/{id}``: what precedes the last ``/`` before the first brace is a store, the rest the object's name in there.
Values of several columns are percent-encoded, so that no two references have one name; the value of a single column may be a path.

A deleter is given the data reference, never a bare name, so that it cannot hit what now lives under that name. Data that is not there is
gone: a deletion is repeated after a crash, and by runs that do not know of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BucketCatalogError, InvalidName, InvalidOption, StoreNotFound
from ...model.arrays import Mask
from ...model.paths import is_data_of_a_catalog, is_of_a_log
from ...model.tables import Table
from ...parallel import in_order
from ...store import LocalStore, Store, open_store
from ...store.object_names import check_name
from ...store.secrets import public_url
from ...store.tickets import is_carried, missing, redeemed, ticket_for
from ...wording import either
from ...write.data_paths import is_data_path

_PLAIN = r"^[A-Za-z0-9_.~-]*$"
_EXAMPLE = "s3://data/{owner}/{bucket_id}/{id}"


@dataclass(frozen=True)
class Template:
    """A place and how objects are named there.

    Invariants: ``literals`` are one more than ``columns``, which are distinct; the inner ones begin or end in ``/``.
    """

    root: str = field(repr=False)  # a password may stand in it
    literals: tuple[str, ...]
    columns: tuple[str, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        root = self.root if is_carried() else public_url(self.root)
        return Template, (root, self.literals, self.columns)

    @classmethod
    def parse(cls, text: str) -> Template:
        """The template that ``text`` is; ``InvalidOption`` where it is none, or where two references could have one name."""
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise _refused(text, f"it cannot be read: {error}") from None
        except TypeError:
            raise InvalidOption(f"data_url is {text!r}, and no text.", next_step=f"Give a URL such as {_EXAMPLE}.") from None
        literals, columns = [""], []
        for literal, name, spec, conversion in parts:
            literals[-1] += literal
            if name is not None:
                if not name.isidentifier() or spec or conversion or name in columns:
                    raise _refused(text, f"{{{name}}} is not a column, or stands in it twice")
                columns.append(name)
                literals.append("")
        place, slash, literals[0] = literals[0].rpartition("/")
        if not columns:
            raise _refused(text, "it names no column")
        if not slash or not place.rstrip("/") or place.rstrip("/").endswith(":"):
            raise _refused(text, "it does not say in which folder or bucket")
        if any("/" not in literal for literal in literals[1:-1]):
            raise _refused(text, "its columns are not separated by /")
        return cls(place, tuple(literals), tuple(columns))

    def names(self, references: Mapping[str, pa.Array] | pa.Table) -> pa.Array:
        """The names of the objects of these references, given as surface columns; null where one is, or is no text."""
        parts: list[Any] = [self.literals[0]]
        for column, literal in zip(self.columns, self.literals[1:], strict=True):
            values = references[column]
            text = _text(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
            parts += [_encoded(text) if len(self.columns) > 1 else text, literal]
        return pc.binary_join_element_wise(*(pa.scalar(part) if isinstance(part, str) else part for part in parts), "")


def _text(values: pa.Array) -> pa.Array:
    """As text; null for bytes that are no UTF-8, of which no object's name is made."""
    text = values.cast(pa.string(), safe=False)
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        distinct = text.cast(pa.binary()).drop_null().unique()
        return pa.array(map(_decoded, distinct.to_pylist()), pa.string()).take(
            pc.index_in(text.cast(pa.binary()), value_set=distinct)
        )
    return text


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _encoded(text: pa.Array) -> pa.Array:
    """Percent-encoded; what has nothing to be encoded, such as uuids and numbers, is not looked at one by one."""
    plain = pc.match_substring_regex(text, _PLAIN)
    if pc.all(plain, min_count=0).as_py():
        return text
    distinct = text.drop_null().unique()
    return pa.array([quote(value, safe="") for value in distinct.to_pylist()], pa.string()).take(
        pc.index_in(text, value_set=distinct)
    )


@dataclass(frozen=True)
class DataPlace:
    """A store with data in it, and how it is named there. No object of a catalog's log is ever data, wherever the place is.

    It pickles as what it was opened with but for the secrets in that, see ``store.tickets``, and shows none of it. ``given`` is the store
    itself, where nobody has to open it.
    """

    template: Template
    catalog_url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    given: Store | None = None
    ticket: str | None = None
    """Where it was unpickled, and the process does not know what the ticket is for."""

    @classmethod
    def given_by(cls, text: str | None, options: Mapping[str, Any] | None, catalog: Store) -> DataPlace | None:
        """The place that a template names, None without one; ``InvalidOption`` where it is none, or options are all that is given."""
        if text is None and options:
            raise InvalidOption(
                f"{', '.join(sorted(options))} would be options of the store that data lies in, and nothing says where that is.",
                next_step=f"Say where data lies too, by {either('data_url', '--data-url')}.",
            )
        return None if text is None else cls.open(text, options, catalog)

    @classmethod
    def open(cls, text: str, options: Mapping[str, Any] | None, catalog: Store) -> DataPlace:
        """The place that a template names; ``InvalidOption`` where it is none."""
        template = Template.parse(text)
        open_store(template.root, options)  # an error says at once what is wrong
        return cls(template, catalog.url, dict(options or {}))

    @cached_property
    def store(self) -> Store:
        """The store, opened in this process. What a symbolic link leads to is none of its data."""
        if self.ticket is not None:
            raise missing(public_url(self.template.root))
        store = self.given if self.given is not None else open_store(self.template.root, self.options or None)
        return store.leaving_links() if isinstance(store, LocalStore) else store

    def require(self) -> None:
        """``StoreNotFound`` where the place is a folder that is not there. An object store has no folders: there nothing is found."""
        if "://" not in self.store.url and not Path(self.store.url).is_dir():
            raise StoreNotFound(f"There is no folder {self.store.url}.", next_step="Check the path that says where data lies.")

    def __reduce__(self) -> tuple[Any, ...]:
        root, ticket = self.template.root, self.ticket
        if ticket is None and not is_carried() and (self.options or public_url(root) != root):
            ticket = ticket_for((root, self.options))
        return _reopened, (self.template, self.catalog_url, {} if ticket else self.options, self.given, ticket)

    @property
    def is_in_catalog(self) -> bool:
        """Whether the place is the catalog or a folder in it."""
        return f"{self.store.url.rstrip('/')}/".startswith(f"{self.catalog_url.rstrip('/')}/")

    @property
    def holds_catalog(self) -> bool:
        """Whether the catalog is a folder in the place."""
        return f"{self.catalog_url.rstrip('/')}/".startswith(f"{self.store.url.rstrip('/')}/")

    def is_data(self, name: str) -> bool:
        """Whether an object of the place can be data: what lies within the catalog is only if it lies below a folder for it."""
        inside = f"{self.store.url.rstrip('/')}/{name}"
        root = f"{self.catalog_url.rstrip('/')}/"
        if is_of_a_log(name):
            return False  # also where the same place is reached by another url
        if not inside.startswith(root):
            return True
        return is_data_of_a_catalog(inside.removeprefix(root))


def _reopened(
    template: Template, catalog_url: str, options: Mapping[str, Any], given: Store | None, ticket: str | None
) -> DataPlace:
    kept = None if ticket is None else redeemed(ticket)
    if kept is None:
        return DataPlace(template, catalog_url, options, given, ticket)
    root, options = kept
    return DataPlace(replace(template, root=root), catalog_url, options, given)


def _refused(text: str, why: str) -> InvalidOption:
    return InvalidOption(
        f"{public_url(text)!r} does not say where data lies: {why}.", next_step=f"Write a URL such as {_EXAMPLE}."
    )


@dataclass(frozen=True)
class Deletions:
    """For each reference of a batch whether its data is gone, and what went wrong with the others, the first few.

    What is ``left`` is nothing that goes wrong: nobody is to delete it, now or later, for the ``reasons`` that are said, the first few.
    """

    gone: Mask
    problems: tuple[str, ...] = ()
    left: Mask | None = None
    reasons: tuple[str, ...] = ()

    @classmethod
    def pretended(cls, batch: pa.Table) -> Deletions:
        """That all of it is gone."""
        return cls(np.ones(len(batch), dtype=bool))

    @property
    def is_left(self) -> Mask:
        """Which of the data is left."""
        return np.zeros(len(self.gone), dtype=bool) if self.left is None else self.left

    @property
    def counts(self) -> dict[str, int]:
        """How many are gone, how many are left, and how many are neither."""
        gone, left = int(self.gone.sum()), int(self.is_left.sum())
        return {"deleted": gone, "left": left, "failed": len(self.gone) - gone - left}


class Deleter(Protocol):
    """Deletes the data of references: a table with a column for each of a reference's columns, as people see them, each row once."""

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """Delete; says which of the data is gone, as the store has acknowledged. Raises nothing that one reference causes.

        In a dry run nothing is deleted, and what would be asked for counts as gone.
        """
        ...


@dataclass(frozen=True)
class Nobody:
    """Deletes nothing, for a reason."""

    why: str

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """All of it is left."""
        return Deletions(np.zeros(len(batch), dtype=bool), left=np.ones(len(batch), dtype=bool), reasons=(self.why,))


Callback = Callable[[pa.Table], Any]
"""A user's own: takes a batch of references, returns a boolean for each: whether its data is gone."""
_FEW = 3


@dataclass(frozen=True)
class Calling:
    """Asks a callable. What it raises is a failure of the whole batch, which the next run tries again."""

    call: Callback
    who: str = "the deleter"

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """What the callable says; nothing is gone where it raises, or answers something else than a boolean for each row."""
        if dry_run:
            return Deletions.pretended(batch)
        nothing = np.zeros(len(batch), dtype=bool)
        try:
            answer = self.call(batch)
        except Exception as error:  # whatever a user's own code raises, the rest of the run goes on
            return Deletions(nothing, (f"{self.who} raised {type(error).__name__}: {error}",))
        try:
            values = answer.combine_chunks() if isinstance(answer, pa.ChunkedArray) else pa.array(answer, pa.bool_())
            gone = np.asarray(values.cast(pa.bool_()).fill_null(False), dtype=bool)
        except (pa.ArrowException, TypeError, ValueError) as error:
            return Deletions(nothing, (f"the answer of {self.who} holds no booleans: {error}",))
        if len(gone) != len(batch):
            return Deletions(nothing, (f"the answer of {self.who} has {len(gone)} values for {len(batch)} references",))
        missed = len(batch) - int(gone.sum())
        return Deletions(gone, (f"{self.who} left the data of {missed} references",) if missed else ())


@dataclass(frozen=True)
class Deleting:
    """Deletes objects of a place, one request each."""

    place: DataPlace

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """Gone is what the store has deleted or has not."""
        names = self.place.template.names(batch).to_pylist()
        return _deleted(self.place.store, names, self.place.is_data, "lies where a catalog keeps no data", dry_run=dry_run)


@dataclass(frozen=True)
class InCatalog:
    """Deletes what references of one column name: paths in the catalog, below some writer's folder for data of this database."""

    store: Store
    database: str

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """Gone is what the store has deleted or has not; what is no such path is left."""
        if batch.num_columns != 1:
            return Nobody(f"{', '.join(batch.column_names)} are not a path in the catalog").delete(batch)
        names = batch.column(0).to_pylist()
        why = f"lies outside of WRITER/{self.database}/data/, and nothing else is deleted as data"
        return _deleted(self.store, names, lambda name: is_data_path(name, self.database), why, dry_run=dry_run)


def _deleted(store: Store, names: Sequence[str | None], is_data: Callable[[str], bool], why: str, *, dry_run: bool) -> Deletions:
    """Delete objects, one request each, and nothing that is no data: that is left, because of ``why``. None is the name of nothing."""

    def delete(name: str | None) -> tuple[str, bool]:
        """Why it was not deleted, empty where it is gone, and whether it will never be."""
        if name is None:
            return "a reference has bytes that are no text, of which no name is made", True
        if not is_data(name):
            return f"{name!r} {why}", True
        try:
            check_name(name)
            if not dry_run:
                store.delete(name)
        except InvalidName as error:
            return error.message.removesuffix("."), True
        except BucketCatalogError as error:
            return error.message, False
        return "", False

    said = list(in_order(delete, names, threads=store.concurrency))
    problems, reasons = ([text for text, is_left in said if text and is_left is wanted] for wanted in (False, True))
    gone, left = (np.array(mask, dtype=bool) for mask in ([not text for text, _ in said], [is_left for _, is_left in said]))
    return Deletions(gone, tuple(problems[:_FEW]), left, tuple(reasons[:_FEW]))


@dataclass(frozen=True)
class Deleters:
    """Who deletes the data of which tables: those that say how, by name, and somebody for the ``others``."""

    by_table: Mapping[str, Deleter] = field(default_factory=dict)
    others: Deleter | None = None

    def of(self, tables: Sequence[Table]) -> Deleter:
        """Who deletes what these tables name alike; nobody where none can, or where they do not agree who it is.

        One at a URL can find data by references of the columns that stand in it alone.
        """
        names = ", ".join(repr(table.name) for table in tables)
        said = [self.by_table.get(table.name) for table in tables]
        chosen = said[0] if said[0] is not None else self.others
        if any(one != said[0] for one in said):
            return Nobody(f"{names} name data alike, and do not all say the same of how it is deleted")
        if chosen is None:
            return Nobody(f"nothing says how data of {names} is deleted: a data URL or a deleter would")
        if isinstance(chosen, Deleting) and sorted(chosen.place.template.columns) != sorted(tables[0].data_reference):
            return Nobody(f"the URL has not the columns by which {names} name data: {', '.join(tables[0].data_reference)}")
        return chosen


NOBODY = Deleters()


def deleters(given: Callback | None, place: DataPlace | None, by_table: Mapping[str, Deleter]) -> Deleters:
    """Who deletes what, where a user gave a callable, which is then asked for everything, or a place, for what nobody else says how.

    ``InvalidOption`` where it is both, or no callable.
    """
    if given is not None and place is not None:
        raise InvalidOption("Data is deleted by a deleter or at a URL, not by both.", next_step="Give one of them.")
    if given is not None and not callable(given):
        raise InvalidOption(f"{given!r} is not a deleter of data.", next_step="Give a callable that takes a table of references.")
    if given is not None:
        return Deleters(others=Calling(given))
    return Deleters(by_table, Deleting(place) if place is not None else None)
