"""Measure row patterns: conditions and matcher without the sort, and islands compared with window functions."""
