"""Tests of Spark's own file system for S3, in a lane of its own: what it needs is hundreds of megabytes."""
