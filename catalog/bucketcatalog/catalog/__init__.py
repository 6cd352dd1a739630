"""The catalog: the way in, to reading, to writing, and to what maintainers do.

``Catalog`` opens what a url leads to and hands on what is asked of it: ``query`` answers, ``write`` commits, ``maintain`` keeps house.

::

    opened       what a url leads to: a store, its databases, the systems that are there
    reading      what is read: a cut of a database, and what lies between two
    writing      what is committed: by writers, and of tables, tags and pins
    maintaining  what is done to keep a catalog
    catalog      all of these, of one place; of several the way to a federation
"""

from .catalog import Catalog
from .opened import DEFAULT_DATABASE

__all__ = ["DEFAULT_DATABASE", "Catalog"]
