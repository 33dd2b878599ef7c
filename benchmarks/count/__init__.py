"""Counting matches, in one process and on Spark."""
