"""Measure the streaming engine, streams in process and streams on Spark, and run a soak test."""
