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

from .fields import IN_CATALOG
from .jobs import Job, JobTask, Planned, RunTasks, in_turn
from .system import System

__all__ = ["IN_CATALOG", "Job", "JobTask", "Planned", "RunTasks", "System", "in_turn"]
