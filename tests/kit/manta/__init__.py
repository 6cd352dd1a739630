"""Manta's metadata service a second time, as SQL on a real PostgreSQL, and what compares the two.

::

    rfd           the service by the RFD's SQL: class Rfd
    conditions    its conditions
    steps         what can be asked of both
    traces        the strategy that invents traces of steps
    differences   what is meant to differ, and what is done about it
    both          runs a trace against both and compares everything
    nodes         nodes of the service in a world, and a store whose commits wait
    schedules     in which order operations that race look and commit
"""
