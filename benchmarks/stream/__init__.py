"""The streaming engine, streams on Spark, and a soak test."""
