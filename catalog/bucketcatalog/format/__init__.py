"""Every file of the catalog between bytes and values: the only package that imports generated protobuf, and one that does no I/O."""
