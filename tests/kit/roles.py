"""Credentials with the rights of one role, as the shipped policies say and the real server understands them."""

from __future__ import annotations

import json

from minio.clients import client
from minio.policy import policy
from minio.process import Server


def credentials(server: Server, role: str, bucket: str, root: str = "", writer: str | None = None) -> dict[str, str]:
    """Storage options that may do what ``minio/policies/<role>.json`` allows, and nothing else, for an hour."""
    sts = client(server.storage_options, "sts")
    try:
        # MinIO takes no notice of role and session, but boto3 insists on them.
        given = sts.assume_role(
            RoleArn="arn:aws:iam::000000000000:role/any",
            RoleSessionName=role,
            Policy=json.dumps(policy(role, bucket, root, writer), separators=(",", ":")),
            DurationSeconds=3600,
        )["Credentials"]
    finally:
        sts.close()
    return server.storage_options | {
        "key": given["AccessKeyId"],
        "secret": given["SecretAccessKey"],
        "token": given["SessionToken"],
    }
