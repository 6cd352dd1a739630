"""``bucketcatalog iox``: data tables, from Parquet files to fewer and larger ones.

A command that changes rows commits by a writer of this machine's, ``data-HOST``, compaction by ``compactor-HOST``, unless another is named.

::

    conditions    conditions as they are typed
    files         ``compact`` and ``files``, and what all share
    rows          ``add``, ``remove`` and ``delete``
    mending       ``rebuild`` and ``verify``
"""

from __future__ import annotations

from ....console.app import program
from .files import compact, files
from .mending import rebuild_, verify_
from .rows import add, delete, remove

_ABOUT = "Tables of rows in Parquet files: many writers, soft deletes, compaction, rebuilding."

app = program(help=_ABOUT)
app.callback(help=_ABOUT)(lambda: None)

for _command in (add, remove, delete, compact, files, rebuild_, verify_):
    app.command(name=_command.__name__.rstrip("_"))(_command)
