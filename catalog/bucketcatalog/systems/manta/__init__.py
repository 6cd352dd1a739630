"""Buckets and objects as Manta has them (RFD 149): its metadata service on the core tables, with nothing to run beside the store.

::

    errors          what an operation refuses, under the service's names
    names           what an operation takes
    conditions      what a request says of the object that it is about
    payloads        what an operation answers
    accounting      who uses how much, what a deletion frees, and growth
    known           what this process knows, and what it has committed since
    commits         operations of many threads, one transaction
    garbage         records of what was deleted, in batches, and their removal
    placement       which writer commits what, and how that moves
    operations      the service: class Manta
    views           the RFD's tables, accounts, and what is misplaced
    postgres        a PostgreSQL server with the RFD's tables
    postgres_rows   rows of those as the core's tables have them
    from_postgres   import
    to_postgres     export
    cli/            what there is to type
"""

from __future__ import annotations

from ...registry import System
from ...v1 import manta_pb2
from .views import ACCOUNTS, PLACED, VIEWS

SYSTEM = System(
    name="manta", declarations=manta_pb2, commands="bucketcatalog.systems.manta.cli:app", views=(*VIEWS, *ACCOUNTS, *PLACED)
)
