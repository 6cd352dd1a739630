"""How a command line runs and prints."""
