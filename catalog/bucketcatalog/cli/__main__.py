"""``python -m bucketcatalog.cli`` is the program ``bucketcatalog``."""

from . import main

if __name__ == "__main__":
    main()
