"""Evaluate bound expressions over columns, and code values for kernels.

- `columns`: read the columns of a table as single arrays
- `values`: convert columns and constants to the few types that operators work on
- `evaluate`: evaluate an expression, and the functions of texts and choices
- `compare`: compare values of any types
- `arithmetic`: apply operators and functions of numbers, instants and durations
- `group_functions`: aggregate the elements of Kleene groups
- `codes`: code values as integers that compare as the values do

Predicates that Arrow tests are evaluated (`mask`); comparisons of two events are coded once and tested by kernels.
"""
