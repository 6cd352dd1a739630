"""Mending what is wrong with a catalog, as far as what is left of it allows: ``repair``, a maintainer's."""
