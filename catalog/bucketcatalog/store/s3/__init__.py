"""S3 and what speaks like it: the backend that a catalog in production lives on. Nothing else in the package imports boto3 or botocore.

::

    options      storage options as values; credentials among them, kept in their process
    client       one boto3 client a process, tuned
    failures     what boto3 raises as ours
    clocks       the store's time, from the dates of its answers
    calls        a request with its retries and its errors; pages of a bucket
    uploads      large objects in parts
    store        the seam on S3
    inventory    versioning, pages, headers and tags of a bucket
"""
