"""What can be inventoried, each behind the same seam."""
