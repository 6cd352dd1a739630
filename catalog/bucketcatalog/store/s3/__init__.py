"""S3 and what speaks like it: the backend that a catalog in production lives on.

::

    options     what a user may say about a store, from storage options to values
    client      one client a process and store, tuned; the only module that makes one
    failures    what went wrong with a request, in this package's errors
    calls       a request with its retries, and the store's time from every answer
    uploads     large objects in parts, and parts that nobody completed
    listing     pages of a bucket
    store       the seam on top of these

Nothing else in the package imports boto3 or botocore.
"""
