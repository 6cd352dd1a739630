"""What a user calls with a SparkSession in hand: make the format known, or show a whole database at once."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bucketcatalog import CatalogWarning, InvalidOption
from bucketcatalog.model.names import names_given
from bucketcatalog.query.metadata import METADATA_TABLES

from .options import STORAGE
from .read.relation import open_relation
from .source import DefaultSource

_OF_ONE_TABLE = frozenset({"table", "columns", "bucket", "owner", "prefix", "readchangefeed"})
_OF_TIME = frozenset({"timestampasof", "versionasof"})


def register(spark: SparkSession) -> None:
    """Make ``format("bucketcatalog")`` known to a session.

    Spark finds it by itself, unless the import of some other installed ``pyspark_*`` package fails; this works then too.
    """
    spark.dataSource.register(DefaultSource)


def attach(
    spark: SparkSession,
    path: str | os.PathLike[str],
    database: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    view_prefix: str = "",
    systems: Iterable[str] = (),
    **options: Any,
) -> list[str]:
    """Show every table of a database as a temporary view, all at the same cut; returns the views' names.

    Attach again to see later commits. A view is called ``view_prefix`` and the table's name, with ``_`` for each dot, and replaces one
    of that name. What installed systems show is among them where the database has a table of the system; ``systems`` names others.
    ``options`` are those of a read that are not about one table, such as ``timestampAsOf``. ``InvalidOption`` where two tables
    would be called alike, and then nothing is shown; a warning for what else cannot be shown.
    """
    register(spark)
    given = {"path": os.fspath(path)} | ({} if database is None else {"database": database})
    given |= {f"{STORAGE}{name}": _text(value) for name, value in (storage_options or {}).items()}
    given |= {name: _text(value) for name, value in options.items()}
    for name in given:
        if name.lower() in _OF_ONE_TABLE:
            raise InvalidOption(f"The option {name} is about one table.", next_step="Use spark.read for that table.")
    relation = open_relation({**given, "table": "tables"})
    snapshot, registry = relation.snapshot, relation.catalog.registry
    named = names_given(systems, "systems", "systems=['manta']")
    tables = [*dict.fromkeys([*snapshot.tables, *registry.view_names(snapshot, named)])]
    held = {*snapshot.rows, *METADATA_TABLES}
    views = _called(sorted(tables, key=lambda name: name not in held), held, view_prefix)
    fixed = {name: value for name, value in given.items() if name.lower() not in _OF_TIME}
    fixed |= {"database": snapshot.database, "versionAsOf": snapshot.version}
    for table, view in views.items():
        _show(spark, fixed, table, view)
    shown = list(views.values())
    for written in registry.sql_views(snapshot, named):
        view = f"{view_prefix}{written.name}"
        try:
            spark.sql(written.text({name: _quoted(views[name]) for name in written.of})).createOrReplaceTempView(_quoted(view))
        except (AnalysisException, KeyError) as error:
            warnings.warn(f"The view {view!r} is not shown: {str(error).splitlines()[0]}", CatalogWarning, stacklevel=2)
        else:
            shown.append(view)
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


def _quoted(view: str) -> str:
    """A name as SQL has it."""
    return f"`{view.replace('`', '``')}`"


def _show(spark: SparkSession, options: Mapping[str, str], table: str, view: str) -> None:
    path = options["path"]
    rest = {name: value for name, value in options.items() if name != "path"}
    spark.read.format("bucketcatalog").options(**rest, table=table).load(path).createOrReplaceTempView(_quoted(view))


def _text(value: Any) -> str:
    """An option's value as Spark carries it."""
    if isinstance(value, (bool, Mapping, list)):
        return json.dumps(value)
    return str(value)
