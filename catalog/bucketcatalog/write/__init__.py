"""Rows in, one PUT out."""
