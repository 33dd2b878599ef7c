"""Measure the streaming engine and streams on Spark, and run a soak test."""
