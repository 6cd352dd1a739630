"""Systems: what one is, and how those that are installed are found.

A system is a package of tables, views, commands and more on top of the engine, which knows none of them. What its author imports is
shown here.

::

    jobs         work that grows with the data
    fields       what the fields of a system take
    system       what a system declares
    own_code     what a system does itself, at its own risk
    installed    those that are there, and what a catalog has of them
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fields import IN_CATALOG
    from .jobs import Job, JobTask, Planned, RunTasks, in_turn
    from .system import System

__all__ = ["IN_CATALOG", "Job", "JobTask", "Planned", "RunTasks", "System", "in_turn"]

_MODULES = {"IN_CATALOG": ".fields", "System": ".system"}
"""Where what is shown here is, beside what is in ``jobs``. It is imported when it is asked for: every catalog imports this package."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES.get(name, ".jobs"), __name__), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
