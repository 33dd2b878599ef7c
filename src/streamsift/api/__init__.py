"""Offer queries to Python programs: what `import streamsift` exports.

- `query`: a query that is run, explained or checked; the functions that make one; what belongs to a Spark session.
- `building`: the methods that add a clause, or combine patterns.
- `many`: run or explain many queries at once.
- `arguments`: check the arguments of callers.
- `show`: draw results.

`Query.run` takes a Spark DataFrame, batch or streaming; `run_local` and `batches` take Arrow and pandas tables. pyspark
is imported when a DataFrame is given, and Altair when something is drawn.
"""

from streamsift.api.arguments import memory_bytes
from streamsift.api.many import ShareName, explain_many, run_many
from streamsift.api.query import Query, all_of, any_of, check_cluster, event, metrics, query, register, seq
from streamsift.api.show import plot, show
