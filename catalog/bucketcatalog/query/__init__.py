"""Answers: snapshots, scans, listings, changes, and tables about the catalog itself."""
