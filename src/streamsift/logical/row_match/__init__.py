"""Bind MATCH_RECOGNIZE to a schema.

- `bound`: define the classes of a bound clause.
- `binder`: bind a clause: columns, output, WITHIN, SKIP.
- `patterns`: number variables, resolve SUBSET, find what is certain about every match.
- `scope`: resolve names, and collect computed columns.
- `calls`: bind navigation, aggregates, CLASSIFIER and MATCH_NUMBER.
- `expressions`: bind DEFINE and MEASURES: which rows an expression reads, and which parts are columns of one row.
- `values`: bind operators and functions that our engine evaluates.
- `types`: infer the types of results, with Spark's rules.
"""

from streamsift.logical.row_match.binder import bind_rows, columns_read
from streamsift.logical.row_match.bound import BoundRows
