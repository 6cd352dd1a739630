"""Jobs: work on a catalog that the driver plans and commits, and the executors do.

Each is a function of a SparkSession and a catalog's path or url. ``python -m pyspark_bucketcatalog.jobs`` runs them from a command line,
and ``spark-submit`` runs ``jobs/__main__.py``. Nothing is imported before it is asked for.

::

    checkpointing    ``checkpoint``: planned and published by the driver, merged by executors
    collecting       ``gc``: judged, joined and deleted on executors, purged by the driver
    harvesting       ``harvest``: divided and committed by the driver, listed and compared on executors
    reaping          ``reap``: found on executors, ended by the driver
    running          ``run``: a system's job, its tasks done on executors; ``compact_data``, the one that makes large files of small ones
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .checkpointing import checkpoint
    from .collecting import gc
    from .harvesting import harvest
    from .reaping import reap
    from .running import compact_data, run

__all__ = ["checkpoint", "compact_data", "gc", "harvest", "reap", "run"]

# No module here is called like a job: its import would hide the job's name.
_HOMES = {"checkpoint": ".checkpointing", "gc": ".collecting", "harvest": ".harvesting", "reap": ".reaping"}
_HOMES |= dict.fromkeys(("compact_data", "run"), ".running")


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
