"""Apache Spark for bucketcatalog: ``spark.read.format("bucketcatalog")`` and what goes with it.

Spark imports every ``pyspark_*`` module to find data sources, and gives up on all of them if one import fails. So nothing is imported
here before it is asked for, and ``DefaultSource`` needs nothing but PySpark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import jobs
    from .creating import create_table
    from .session import attach, changes, diff, read, register
    from .source import DefaultSource
    from .writing.changing import delete, purge, update

__all__ = ["DefaultSource", "attach", "changes", "create_table", "delete", "diff", "jobs", "purge", "read", "register", "update"]

_HOMES = {"DefaultSource": ".source", "create_table": ".creating"}
_HOMES |= dict.fromkeys(("attach", "changes", "diff", "read", "register"), ".session")
_HOMES |= dict.fromkeys(("delete", "purge", "update"), ".writing.changing")


def __getattr__(name: str) -> Any:
    if name == "jobs":
        return import_module(".jobs", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
