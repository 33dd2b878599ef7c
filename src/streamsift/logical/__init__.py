"""Bind a syntax tree to a schema: settle names, types, scopes and windows, and check what can be checked.

- `binder`: bind a script, or check and sketch it without a schema;
- `scopes`: number the variables, and check the structure of the pattern and that clauses go together;
- `columns`: find columns and their kinds in a schema;
- `expressions`: bind and type expressions;
- `predicates`: split predicates into pieces, and classify them;
- `preferences`: classify objectives as linear, monotone or other;
- `durations`: measure windows in the units of a time column;
- `bound`: the classes of a bound query, with the walks over its pattern and expressions;
- `describe`: describe a bound query as text, which checkpoints store;
- `assumptions`: assume a schema for a query without data.
"""

from streamsift.logical.assumptions import Assumptions, assume_schema
from streamsift.logical.binder import bind, sketch
from streamsift.logical.bound import BoundQuery
