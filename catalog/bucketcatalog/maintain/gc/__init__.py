"""Collection: what has ended is forgotten, with its data, once nobody can need it; what a writer has left over is found."""
