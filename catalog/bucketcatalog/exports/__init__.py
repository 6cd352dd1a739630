"""What a catalog knows in the forms of others, so that programs that read those read ours.

It stands on the catalog as any user does, and knows the core's tables by name. Rows as plain files are the engine's, ``query.in_files``.

::

    columns      objects and versions of objects as the columns of an S3 Inventory
    inventory    a bucket at a moment as an S3 Inventory: data files, and the manifest that names them
"""

from .inventory import Inventory, s3_inventory

__all__ = ["Inventory", "s3_inventory"]
