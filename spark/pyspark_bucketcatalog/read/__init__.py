"""Reading: a relation planned once at cuts that stay, its partitions, and Spark's readers."""
