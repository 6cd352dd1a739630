"""The Spark data source of bucketcatalog, found by Spark by itself."""
