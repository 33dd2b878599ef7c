"""Match rows in order with a row pattern (MATCH_RECOGNIZE), without Spark.

- `execute`: run a plan on a table: sort, match, build rows
- `order`: sort rows by partition and order; rows at a distance in a partition
- `bits`: evaluate the parts of conditions of the row alone, as bits of a word per row
- `words`: the columns that conditions of the match read, as 64-bit words
- `window`: the end of the WITHIN interval of each row
- `matching`: drive the matcher, and return matches in chunks
- `kernel`: search matches depth first; keep failed states
- `conditions_kernel`: evaluate conditions of the match, and update registers
- `measures`, `aggregates`, `listing`: evaluate measures over matches
- `null_on_error`: evaluate expressions such that what would raise is null
- `output`: build the rows of the result
"""

from streamsift.runtime.row_match.execute import execute
