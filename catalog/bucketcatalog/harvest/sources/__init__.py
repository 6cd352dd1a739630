"""What can be inventoried, each behind the same seam.

After the seam, ``harvest.source``, and before ``harvest.open``, which finds the one that a URL names.

::

    stats       names, stat results and media types as Arrow
    reading     what a file holds, as long as it is the one that was listed
    descent     the open directories from the root of a walk down
    points      where a tree is divided
    local       a directory tree in byte order of paths
    remote      files that fsspec reaches, in byte order of paths
    details     headers and tags of single objects, as columns
    s3_pages    pages and versions of a bucket's listing as Arrow
    s3_parts    where the listing of a bucket is divided
    s3          a bucket, or all its versions, in byte order of keys
"""
