"""Looking for what is wrong with a catalog: everything is read and nothing is written."""
