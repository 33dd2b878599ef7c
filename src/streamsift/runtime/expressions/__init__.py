"""Evaluate bound expressions over columns, and code values for kernels.

- `columns`: reads the columns of a table as single arrays
- `values`: converts columns and constants to the few types that operators work on
- `evaluate`: evaluates an expression, and the functions of texts and choices
- `compare`: compares values of any types
- `arithmetic`: applies operators and functions of numbers, instants and durations
- `real_kernels`: computes with doubles as the C library does
- `group_functions`: aggregates the elements of Kleene groups
- `codes`: codes values as integers that compare as the values do

Predicates that Arrow tests are evaluated (`mask`); comparisons of two events are coded once and tested by kernels.
"""
