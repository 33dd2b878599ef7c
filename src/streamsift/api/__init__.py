"""Offer queries to Python programs: what `import streamsift` exports.

- `query`: run, explain and check a query; create one; register the SQL function; read stream metrics.
- `row_query`: run, explain and check MATCH_RECOGNIZE.
- `sql`: run SQL statements with MATCH_RECOGNIZE.
- `building`: the methods that add a clause or combine patterns.
- `many`: run or explain many queries at once.
- `streams`: run queries on a stream in this process.
- `arguments`: check arguments.
- `show`: draw results.
- `magic`: the IPython extension.

`Query.run` takes a Spark DataFrame, batch or streaming; `run_local` and `batches` take Arrow, pandas and Polars tables.
pyspark is imported when a DataFrame is given, Altair when a chart is drawn.
"""

from streamsift.api.arguments import memory_bytes
from streamsift.api.magic import load_ipython_extension, unload_ipython_extension
from streamsift.api.many import ShareName, explain_many, open_many, run_many
from streamsift.api.query import Query, all_of, any_of, check_cluster, event, metrics, query, register, seq
from streamsift.api.row_query import RowQuery, match_recognize
from streamsift.api.show import plot, show
from streamsift.api.sql import sql
from streamsift.api.streams import Stream, StreamMetrics, resume
