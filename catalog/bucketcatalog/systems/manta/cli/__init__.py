"""``bucketcatalog manta``: the service's operations, garbage, placement, accounts, and the ways from and to PostgreSQL.

A command that changes something commits by a writer of this machine's, ``manta-HOST``, unless another is named.

::

    opening     the node that they commit by, the bucket that is meant, and how rows are shown
    objects     ``create``, ``get``, ``update``, ``delete`` and ``list``
    nodes       ``gc``, ``placement`` and ``usage``
    transfer    ``import`` and ``export``
"""

from __future__ import annotations

from ....console.app import program
from .nodes import gc, placement, usage_
from .objects import create, delete, get, list_, update
from .transfer import export, import_

app = program(help="Buckets and objects as Manta's metadata service has them (RFD 149).")


@app.callback()
def _root() -> None:
    """Buckets and objects as Manta's metadata service has them (RFD 149)."""


for _command in (create, get, update, delete, list_, gc, placement, usage_, import_, export):
    app.command(name=_command.__name__.rstrip("_"))(_command)
