"""Provide kernels on plain arrays, independent of plans, queries and events.

- `dtypes`: name array types and special codes
- `comparing`: compare codes and search sorted arrays
- `grouping`: group and select entries
- `hashing`: number equal values, look up rows, encode short strings
- `range_tree`: read the largest numbers of any range (a segment tree of maxima)
- `growing`: append to and concatenate arrays, columns and tables
- `doubles`: find the doubles and the ticks of UPDATE next to given times
"""
