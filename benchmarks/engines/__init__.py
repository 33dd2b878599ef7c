"""Streamsift and its rivals: each turns a question about events into a contender of the harness."""
