"""What only a maintainer does."""
