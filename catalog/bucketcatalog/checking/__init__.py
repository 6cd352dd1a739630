"""Looking for what is wrong with a catalog: ``verify``, which reads everything and writes nothing."""
