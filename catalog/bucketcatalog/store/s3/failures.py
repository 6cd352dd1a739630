"""What went wrong with a request to S3, or before there was one, in this package's errors.

::

    StoreUnreachable   no connection, or not now: nothing was done, the same request may succeed later
    OutcomeUnknown     a put whose answer did not come, or blames the server: it may have been carried out
    AccessDenied       the credentials do not allow it; the next step names the role that does
    StoreNotFound      there is no such bucket
    ObjectNotFound     there is no such object
    UnsupportedStore   the server refuses it for good, or does not speak S3
    InvalidOption      the options, or the configuration of the AWS SDKs, cannot be followed

Only the first two are worth another try. Before a request there is no outcome to be unknown: a client that cannot be made, and
credentials that cannot be had, have an error of their own, ``unprepared``.
"""

from __future__ import annotations

from typing import Any

from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from ...errors import (
    AccessDenied,
    BucketCatalogError,
    InvalidOption,
    ObjectNotFound,
    OutcomeUnknown,
    StoreNotFound,
    StoreUnreachable,
    UnsupportedStore,
)
from ...model.names import role_of
from ...model.paths import writer_of
from ...wording import either

_CREDENTIALS = (
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.TokenRetrievalError,
    boto.SSOError,
    boto.NoAuthTokenError,
)
_NETWORK = (
    boto.ConnectionError,
    boto.HTTPClientError,
    boto.MetadataRetrievalError,
    ResponseParserError,
    HTTPError,
    ConnectionError,
    TimeoutError,
)
_NEVER_SENT = (boto.EndpointConnectionError, boto.ConnectTimeoutError, boto.ProxyConnectionError)
DENIED = {"AccessDenied", "403", "Forbidden", "AllAccessDisabled"}
_OUTDATED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
_NOT_TAKEN = {"RequestTimeout", "BadDigest", "IncompleteBody", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"} | {
    "InvalidPart",  # what completes an upload was damaged on its way: no checksum of it is asked for
    "MalformedXML",
}
_NO_OBJECT = {"NoSuchKey", "NoSuchVersion", "404", "NotFound"}
_BUSY = {"Throttling", "ThrottlingException", "IDPCommunicationError"}
_LACKING = {"NotImplemented", "MethodNotAllowed"}
_GIVE_CREDENTIALS = (
    "Give key and secret as options, a profile, or set the environment up for the AWS SDKs. "
    "Credentials given as options do not travel in pickles."
)
_CHANGING = {"put", "upload"}
_OF_BUCKET = {"list", "list uploads of", "open"}
SENSELESS = (ResponseParserError, KeyError, RecursionError)
"""What botocore or the reading of an answer raises where something else than S3 answers, such as the login page of a network."""


def translated(error: Exception, doing: str, name: str, place: str) -> BucketCatalogError:
    """The error to raise where the store at ``place`` was asked for ``doing`` something to ``name``."""
    where = f"{name!r} in {place}" if name else place
    if isinstance(error, boto.ClientError):
        return _answered(error, doing, name, where, place)
    message = f"Cannot {doing} {where}: {_sentence(error)}"
    if isinstance(error, _CREDENTIALS):
        return AccessDenied(message, next_step=_GIVE_CREDENTIALS)
    if isinstance(error, SENSELESS) and doing not in _CHANGING:
        return UnsupportedStore(
            f"Cannot {doing} {where}: the answer is none of S3's ({type(error).__name__}).",
            next_step="Check the endpoint, and what stands between it and this machine.",
        )
    if isinstance(error, boto.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return AccessDenied(message, next_step="Give the authority's file with the option verify.")
    if isinstance(error, boto.SSLError) and "WRONG_VERSION_NUMBER" in str(error) and doing not in _CHANGING:
        return UnsupportedStore(message, next_step="Check endpoint_url: the server there speaks http, not https.")
    if isinstance(error, boto.InvalidRegionError | ValueError):
        return InvalidOption(message, next_step="Check the url, its options and the AWS configuration files.")
    if isinstance(error, _NEVER_SENT):
        return StoreUnreachable(message, next_step="Check endpoint_url and the network, and that the server runs.")
    return _no_answer(message, doing)


def _no_answer(message: str, doing: str) -> BucketCatalogError:
    if doing in _CHANGING:
        return OutcomeUnknown(message, next_step="Put the same bytes under the same name again.")
    return StoreUnreachable(message, next_step="Try again; if it stays, check the network and the store.")


def _answered(error: boto.ClientError, doing: str, name: str, where: str, place: str) -> BucketCatalogError:
    code, said, status = _answer(error)
    message = f"Cannot {doing} {where}: {said}"
    if code == "NoSuchBucket" or (status == 404 and doing == "open") or (code in _NO_OBJECT and doing in _OF_BUCKET):
        return StoreNotFound(f"There is no bucket for {place}.", next_step="Create it, or check its name and endpoint_url.")
    if code == "NoSuchUpload":  # completed, or thrown away by a maintainer: nobody can say which of them
        return _no_answer(message, doing)
    if code in _NO_OBJECT and doing not in _CHANGING:
        return ObjectNotFound(f"There is no object {where}.", next_step="List what is there, or check the name.")
    if code == "RequestTimeTooSkewed":
        return AccessDenied(message, next_step="Set this machine's clock right: requests are signed with the time.")
    if status in (401, 403) and code in DENIED:
        return AccessDenied(message, next_step=f"Use credentials that have the role {role_for(doing, name)}.")
    if status in (401, 403) or code in _OUTDATED:
        return AccessDenied(message, next_step="Check the credentials in the options or the environment.")
    if code in _LACKING or status in (405, 501):  # for a put as well: who does not know how to has put nothing
        return UnsupportedStore(
            f"Cannot {doing} {where}: the server does not have this. {said}",
            next_step="Check the options, sse among them, and that the server is set up for it.",
        )
    if code in _NOT_TAKEN or status == 409:
        return StoreUnreachable(message, next_step="Try again; if it stays, check the network.")
    if _is_passing(code, status):
        # Also a store that asks for fewer requests may have begun to write, and a proxy before it may have sent the request twice.
        return _no_answer(message, doing)
    return UnsupportedStore(message, next_step="Check that the server speaks S3, and the options.")


def _answer(error: boto.ClientError) -> tuple[str, str, int]:
    """The code of an answer, the code with the reason, and the status, 0 where there is none."""
    answer: dict[str, Any] = error.response.get("Error", {})
    code = str(answer.get("Code") or "")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
    return code, f"{code}: {answer.get('Message') or 'no reason given'}".rstrip(".") + ".", status


def _is_passing(code: str, status: int) -> bool:
    return status >= 500 or status in (0, 408, 425, 429) or code in _BUSY


def unprepared(error: Exception, place: str) -> BucketCatalogError:
    """The error to raise where a client of the store at ``place``, or its credentials, cannot be had: the store was asked nothing."""
    if isinstance(error, boto.ClientError):  # of the service that gives credentials
        code, said, status = _answer(error)
        message = f"Cannot open {place}: {said}"
        if _is_passing(code, status):
            return StoreUnreachable(message, next_step="Try again; if it stays, check the service that gives the credentials.")
        return AccessDenied(message, next_step="Check the role and the token or profile that the credentials are fetched with.")
    message = f"Cannot open {place}: {_sentence(error)}"
    if isinstance(error, _CREDENTIALS):
        return AccessDenied(message, next_step=_GIVE_CREDENTIALS)
    if isinstance(error, boto.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return AccessDenied(message, next_step="Name the authority's file in AWS_CA_BUNDLE.")
    if isinstance(error, _NETWORK):
        return StoreUnreachable(message, next_step="Check the network, and the service that gives the credentials.")
    return InvalidOption(message, next_step="Check the url, its options and the AWS configuration files.")


def _sentence(error: Exception) -> str:
    return f"{str(error).rstrip('.')}."


def role_for(doing: str, name: str) -> str:
    """Who may do this, as the policies in ``minio/policies`` name it."""
    if doing in ("delete", "discard", "list uploads of"):
        return "maintainer"
    if doing not in _CHANGING:
        return "reader (or any other) of this catalog"
    writer = writer_of(name)
    own = f"name the one that these credentials are for: {either('writer=', '--writer')}"
    return f"{role_of(writer)} for {writer!r}; a writer puts below its own id only, so {own}"
