"""The state of a cut written down, level by level."""
