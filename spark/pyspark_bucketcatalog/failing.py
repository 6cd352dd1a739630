"""What Spark shows of an error of this package that is raised in one of its Python processes: our line, and no traceback before it.

Spark writes what ended such a process behind its own words: a traceback, of which what says what to do is the last line. An error that was
raised on purpose says it all in one. What is raised in the driver, as by ``read`` and ``attach``, reaches users as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NO_TRACEBACK = "SPARK_HIDE_TRACEBACK"
"""What PySpark looks at when it tells of the error that ends one of its processes, as spark.sql.execution.pyspark.udf.hideTraceback.enabled
has it set from the beginning. Set at the end it is for this error alone: no process goes on after it."""


def is_sparks() -> bool:
    """Whether this is a process that Spark has started, which ends with the error that it tells of."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return spec is not None and spec.name.partition(".")[0] == "pyspark"


@contextmanager
def ours_first() -> Iterator[None]:
    """Within it, or for functions that are decorated with it: what this package raises on purpose is told by Spark in its one line.

    But for the error of a system, whose authors need the traceback, and where ``BUCKETCATALOG_TRACEBACK`` is set.
    """
    try:
        yield
    except Exception as error:
        if is_sparks() and _says_all(error):
            os.environ[_NO_TRACEBACK] = "1"
        raise


def _says_all(error: Exception) -> bool:
    if "bucketcatalog.errors" not in sys.modules:  # then it is none of ours, and may be that this cannot be imported
        return False
    from bucketcatalog.errors import BrokenSystem, BucketCatalogError
    from bucketcatalog.query.blame import TRACEBACK

    return isinstance(error, BucketCatalogError) and not isinstance(error, BrokenSystem) and not os.environ.get(TRACEBACK)
