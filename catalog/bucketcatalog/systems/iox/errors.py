"""What reading and writing data tables refuses.

::

    DataError                    the base
    ├── SchemaConflict           two files of a table whose columns do not go together
    ├── KeyConflict              two files of a table that say different things of what tells its rows apart
    └── DataMissing              a file that the catalog names is not there
"""

from __future__ import annotations

from ...errors import BucketCatalogError


class DataError(BucketCatalogError):
    """The base of these errors."""

    code = "DATA"


class SchemaConflict(DataError):
    """Two files have columns that do not go together."""

    code = "SCHEMA_CONFLICT"


class KeyConflict(DataError):
    """Two files say different things of what tells the rows of their table apart."""

    code = "KEY_CONFLICT"


class DataMissing(DataError):
    """A file that the catalog names is not there: it was collected after the cut that is read, or deleted behind the catalog's back."""

    code = "DATA_MISSING"
