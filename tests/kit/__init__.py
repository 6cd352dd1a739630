"""What the lanes share: worlds whose clock stands still, tables and names as odd as they may be, stores and file systems that misbehave."""
