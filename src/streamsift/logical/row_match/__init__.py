"""Bind MATCH_RECOGNIZE to a schema.

- `bound`: define the classes of a bound clause.
"""

from streamsift.logical.row_match.bound import BoundRows
