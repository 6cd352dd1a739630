"""What the rows of a table are at a cut: facts of checkpoints and of the tail, folded slice by slice."""
