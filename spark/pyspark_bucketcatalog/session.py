"""What a user calls with a SparkSession in hand: make the format known, or show a whole database at once."""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from bucketcatalog import Catalog, CatalogWarning, InvalidOption
from bucketcatalog.model.names import names_given
from bucketcatalog.model.times import Time
from bucketcatalog.parallel import in_order
from bucketcatalog.query.metadata import METADATA_TABLES
from bucketcatalog.query.views import SqlView

from .options import given_options, options_between
from .reading.frames import Natively, frame_of, frame_to_show
from .reading.relation import open_relation
from .reading.side_by_side import Places, Storage, frame_of_each
from .source import DefaultSource
from .types import quoted

_AT_ONCE = 4
"""Tables of which frames are made at once: both this process and Spark's wait for the store, and for each other."""
_OF_ONE_TABLE = frozenset({"table", "columns", "bucket", "owner", "prefix", "where", "readchangefeed", "readdifference"})


def register(spark: SparkSession) -> None:
    """Make ``format("bucketcatalog")`` known to a session.

    Spark finds it by itself, unless the import of some other installed ``pyspark_*`` package fails; this works then too.
    """
    spark.dataSource.register(DefaultSource)


def read(
    spark: SparkSession,
    path: str | os.PathLike[str] | Places,
    database: str | None = None,
    table: str = "objects",
    *,
    storage_options: Storage = None,
    native: bool | None = None,
    native_root: str | None = None,
    **options: Any,
) -> DataFrame:
    """The rows of a table at one cut, fixed now, of which Spark's own Parquet reader reads nearly all where it can.

    ``options`` are those of ``format("bucketcatalog")``, of which ``columns`` may be a list and ``where`` conditions as a scan takes them.
    ``native``: True raises ``InvalidOption``
    where more than a few rows cannot be read so, False reads everything through Python. ``native_root`` is what Spark's file systems
    call the catalog, where that is not a path, ``s3://`` or ``s3a://``. All columns may hold nulls, as those of files do.

    Of a list of catalogs, or a mapping of names to these, it is the rows of each, as ``Catalog`` has them: ``_catalog`` can be asked for,
    in ``columns`` and in ``where``, ``versionAsOf`` is of all of them, and ``storage_options`` may be a list, or a mapping by the names.
    """
    natively = Natively.of(native, native_root)
    if isinstance(path, (list, tuple, Mapping)):
        return frame_of_each(spark, path, database, storage_options, {**options, "table": table}, natively)
    if not isinstance(path, (str, os.PathLike)) or not isinstance(storage_options, Mapping | None):
        Catalog(path, storage_options=storage_options)  # which says what is wrong with it
        raise InvalidOption(f"{path!r} is no path and no url.", next_step="Give what Spark's processes can open too.")
    given = given_options(path, database, storage_options, options) | {"table": table}
    return frame_of(spark, open_relation(given), natively)


def changes(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    table: str = "objects",
    *,
    start: Time | int | None = None,
    end: Time | int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Every event of a table after ``start`` (without one: from the beginning) up to ``end`` (without one: now), fixed now.

    Both are a time or a version, as ``Catalog.changes`` takes them.

    ``options`` are those of ``format("bucketcatalog")``, such as ``startingTimestamp``, ``bucket``, or ``columns``, which may be a list.
    """
    ends = options_between(start, end)
    given = given_options(path, database, storage_options, {**options, "readChangeFeed": True, **ends}) | {"table": table}
    return frame_of(spark, open_relation(given), Natively())


def diff(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    table: str = "objects",
    *,
    start: Time | int | None = None,
    end: Time | int | None = None,
    storage_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """The net difference of a table between ``start`` (without one: nothing) and ``end`` (without one: now), fixed now.

    Both, and ``options``, are as of ``changes``.
    """
    ends = options_between(start, end)
    given = given_options(path, database, storage_options, {**options, "readDifference": True, **ends}) | {"table": table}
    return frame_of(spark, open_relation(given), Natively())


def attach(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    view_prefix: str = "",
    systems: Iterable[str] = (),
    questions: bool = False,
    native: bool | None = None,
    native_root: str | None = None,
    **options: Any,
) -> list[str]:
    """Show every table of a database as a temporary view, all at the same cut; returns the views' names.

    Attach again to see later commits. A view is called ``view_prefix`` and the table's name, with ``_`` for each dot, and replaces one
    of that name. What installed systems show is among them where the database has a table of the system; ``systems`` names others.
    ``options`` are those of a read that are not about one table, such as ``timestampAsOf``; ``native`` and ``native_root`` are as of
    ``read``, for tables, their tombstones and views of these. What is damaged is an error of queries of its own view. ``InvalidOption``
    where two tables would be called alike or one cannot be read as ``native`` demands, and then nothing is shown; a warning for what else
    cannot be.

    With ``questions`` there are also the views ``du``, ``find``, ``dups``, ``growth``, ``who`` and ``age``, with the same prefix, and
    ``InvalidOption`` where anything else is called so.
    """
    given = given_options(path, database, storage_options, options)
    for name in given:
        if name.lower() in _OF_ONE_TABLE:
            raise InvalidOption(f"The option {name} is about one table.", next_step="Use spark.read for that table.")
    relation = open_relation({**given, "table": "tables"})
    snapshot, registry = relation.snapshot, relation.catalog.registry
    named = names_given(systems, "systems", "systems=['manta']")
    tables = [*dict.fromkeys([*snapshot.tables, *registry.view_names(snapshot, named)])]
    held = {*snapshot.rows, *METADATA_TABLES}
    views = _called(sorted(tables, key=lambda name: name not in held), held, view_prefix)
    frame = partial(frame_to_show, spark, natively=Natively.of(native, native_root))
    if questions:
        from .questions import refuse_taken, show  # what who asks none need not wait for

        of_systems = (f"{view_prefix}{each.name}" for each in registry.sql_views(snapshot, named))
        refuse_taken(spark, [*views.values(), *of_systems], view_prefix)
    frames = list(in_order(lambda table: frame(relation.of_table(table)), list(views), threads=_AT_ONCE))
    made = [partial(rows.createOrReplaceTempView, quoted(view)) for rows, view in zip(frames, views.values(), strict=True)]
    deque(in_order(lambda make: make(), made, threads=_AT_ONCE), maxlen=0)
    shown = [*views.values(), *_show_written(spark, registry.sql_views(snapshot, named), views, view_prefix)]
    if questions:
        read = partial(frame_to_show, spark, natively=Natively.of(None, native_root))
        shown += show(spark, relation, dict(zip(views, frames, strict=True)), read, view_prefix)
    return shown


def _called(names: Iterable[str], held: Collection[str], prefix: str) -> dict[str, str]:
    """What views are called, of which no two may be called alike for Spark, which takes no account of case.

    ``InvalidOption`` where two are that the database has itself; what systems show beside is left out, with a warning.
    """
    views: dict[str, str] = {}
    first: dict[str, str] = {}
    for name in names:
        view = f"{prefix}{name.replace('.', '_')}"
        other = first.setdefault(view.casefold(), name)
        if other == name:
            views[name] = view
        elif name in held:
            raise InvalidOption(
                f"{other!r} and {name!r} would both be shown as {view!r}.",
                next_step="Read one of them with spark.read, by its name.",
            )
        else:
            warnings.warn(f"{name!r} is not shown: {other!r} is shown as {view!r}.", CatalogWarning, stacklevel=3)
    return views


def _show_written(spark: SparkSession, written: Iterable[SqlView], views: Mapping[str, str], prefix: str) -> list[str]:
    """Show what SQL says of ``views``, which are called so by what they show, each view that can be; a warning for each that cannot.

    What is not shown keeps no other one from its name.
    """
    taken = {view.casefold(): f"{name!r} is shown as {view!r}" for name, view in views.items()}
    shown: list[str] = []
    for each in written:
        view = f"{prefix}{each.name}"
        hidden = next((name for name in each.of if name not in views), None)
        if view.casefold() in taken:
            why = f"{taken[view.casefold()]}."
        elif hidden is not None:
            why = f"it reads {hidden!r}, which is not shown."
        else:
            why = _show_query(spark, each.text({name: quoted(views[name]) for name in each.of}), view)
        if why:
            warnings.warn(f"The SQL view {view!r} is not shown: {why}", CatalogWarning, stacklevel=3)
        else:
            taken[view.casefold()] = f"the SQL view {each.name!r} is shown as {view!r}"
            shown.append(view)
    return shown


def _show_query(spark: SparkSession, sql: str, view: str) -> str:
    """Show what a query gives; returns why not where Spark cannot run it, else nothing."""
    try:
        spark.sql(sql).createOrReplaceTempView(quoted(view))
    except AnalysisException as error:
        return str(error).splitlines()[0]
    return ""
