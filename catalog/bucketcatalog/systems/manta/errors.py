"""What an operation refuses, under the names that Manta's metadata service gives its errors.

::

    MantaError                           an error of the service: ``name`` and ``message`` are what it sends
    ├── BucketAlreadyExists
    ├── BucketNotFound
    ├── BucketNotEmpty
    ├── ObjectNotFound
    ├── PreconditionFailedError          a condition of the request does not hold
    ├── LimitConstraintError             a page of more than 1,024, or of none
    ├── ContentMd5Error                  no base64 of 16 bytes
    ├── InvalidBucketNameError
    ├── InvalidBucketObjectNameError
    └── NotPlacedHere                    another node of the service commits there; ours, for the service has no such error

Source: the service's dispatch table, and the HTTP service before it for the last two and ``BucketNotEmpty``.
"""

from __future__ import annotations

from ...errors import BucketCatalogError


class MantaError(BucketCatalogError):
    """The base of what an operation refuses."""

    code = "MANTA"

    @property
    def name(self) -> str:
        """What the service calls the error."""
        return type(self).__name__

    def payload(self) -> dict[str, dict[str, str]]:
        """The error as the service sends it."""
        return {"error": {"name": self.name, "message": self.message}}


class BucketAlreadyExists(MantaError):
    """The owner has a bucket of that name."""

    code = "MANTA_BUCKET_ALREADY_EXISTS"


class BucketNotFound(MantaError):
    """The owner has no bucket of that name."""

    code = "MANTA_BUCKET_NOT_FOUND"


class BucketNotEmpty(MantaError):
    """The bucket that was to be deleted has objects."""

    code = "MANTA_BUCKET_NOT_EMPTY"


class ObjectNotFound(MantaError):
    """The bucket has no object of that name."""

    code = "MANTA_OBJECT_NOT_FOUND"


class PreconditionFailedError(MantaError):
    """A condition of the request does not hold of the object."""

    code = "MANTA_PRECONDITION_FAILED"


class LimitConstraintError(MantaError):
    """A page has 1 to 1,024 entries."""

    code = "MANTA_LIMIT_CONSTRAINT"


class ContentMd5Error(MantaError):
    """An MD5 is 16 bytes, given as base64."""

    code = "MANTA_CONTENT_MD5"


class InvalidBucketNameError(MantaError):
    """A name that no bucket can have."""

    code = "MANTA_INVALID_BUCKET_NAME"


class InvalidBucketObjectNameError(MantaError):
    """A name that no object can have."""

    code = "MANTA_INVALID_BUCKET_OBJECT_NAME"


class NotPlacedHere(MantaError):
    """What was to be changed lies where another writer commits."""

    code = "MANTA_NOT_PLACED_HERE"
