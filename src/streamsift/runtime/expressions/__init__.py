"""Evaluate bound expressions over columns, and encode values for kernels.

- `columns`: read the columns of a table as contiguous arrays
- `values`: convert columns and constants to the few types that operators support
- `evaluate`: evaluate an expression; string functions, LEAST, GREATEST and COALESCE
- `compare`: compare values of any types
- `arithmetic`: apply arithmetic operators and functions to numbers, instants and durations
- `group_functions`: aggregate the elements of Kleene groups
- `codes`: encode values as integers that compare as the values do

Arrow evaluates single-event predicates (`mask`). Values that two events are compared by are encoded once, so that
kernels compare integers.
"""
