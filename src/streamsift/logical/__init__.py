"""Bind a syntax tree to a schema: resolve and check names, types, scopes and windows.

- `binder`: bind a script, or check it without a schema;
- `written_out`: write out NEXT, LATEST and UNTIL as negations;
- `scopes`: number the variables, and check the structure of the pattern and the combination of clauses;
- `columns`: look up columns and their kinds in a schema;
- `expressions`: bind and type expressions;
- `predicates`: split predicates into conjuncts, and classify them;
- `preferences`: classify objectives as linear, monotone or other;
- `durations`: convert windows to the units of a time column;
- `lateness`: parse how late the events of a stream may arrive;
- `bound`: define the classes of a bound query, with traversals of its pattern and expressions;
- `describe`: describe a bound query as text, which checkpoints store;
- `row_match`: bind MATCH_RECOGNIZE;
- `assumptions`: assume a schema for a query without data.
"""

from streamsift.logical.assumptions import Assumptions, assume_schema
from streamsift.logical.binder import bind, sketch
from streamsift.logical.bound import BoundQuery
from streamsift.logical.lateness import lateness_of
