"""Exit codes that are not 0, 1 or 2."""

INTERRUPTED = 130
"""As shells have it for a program that Ctrl-C ended."""
