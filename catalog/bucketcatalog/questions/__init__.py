"""The questions that people ask of an inventory, each a function of a catalog or a snapshot.

Each reads the columns that it needs and no others, and no rows where kept sums have the answer. They stand on the catalog as any user does.

::

    asking        what is asked about: a moment, a bucket, a prefix
    grouping      batches into counts and exact sums by group
    usage         ``du``: objects and bytes by bucket or prefix
    extremes      ``top``: the largest, the oldest, the newest
    finding       ``find``: by size, age, glob, type, class and tag
    duplicates    ``dups``: the same content more than once
    history       ``growth``: objects and bytes over time
    ended         ``who``: who deleted and overwrote what
    ages          ``age``: what has lain unchanged for how long
    prices        ``cost``: what it costs a month
    sql           the questions as views of SQL
"""

from .ages import age
from .duplicates import Duplicates, dups
from .ended import who
from .extremes import top
from .finding import find
from .history import growth
from .prices import cost
from .usage import du

__all__ = ["Duplicates", "age", "cost", "du", "dups", "find", "growth", "top", "who"]
