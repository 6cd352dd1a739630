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
    from .session import attach, read, register
    from .source import DefaultSource

__all__ = ["DefaultSource", "attach", "create_table", "jobs", "read", "register"]

_HOMES = {
    "DefaultSource": ".source",
    "attach": ".session",
    "create_table": ".creating",
    "read": ".session",
    "register": ".session",
}


def __getattr__(name: str) -> Any:
    if name == "jobs":
        return import_module(".jobs", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
