"""What a catalog is, as plainly as it can be said: lists, loops and comparisons. Nothing in here is shared with the engine."""
