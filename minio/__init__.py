"""A real MinIO server for tests, benchmarks and trying things out, and the policies that give each role of a catalog its rights.

Not a part of the package that users install: it lies beside it in the sources, and runs from there.
"""
