"""Run plans on Arrow tables in process: columnar events, Numba kernels, Arrow batches.

- `execute`: run a plan of any strategy on a table, and return the schema of its result; `analyze`: measure a run.
- `detect`, `count`, `rank`: the strategies: find all matches, aggregate over them, or find the k best.
- `share`: run many plans on one table; `stream`: process events incrementally and emit rows once they are final.
- `groups`, `negation`, `paths`: search for Kleene groups, negated sub-patterns and best paths.
- `row_match`: match rows in order with a row pattern (MATCH_RECOGNIZE).
- `matches`: read values of matches and build result rows; `state`: keep events and totals between micro-batches.
- `events`: sort events by time; `expressions`: compute values of columns; `arrays`: plain kernels on arrays.
- `input`: read files and frames; `resources`: limit memory, track progress, announce compiles.
"""

from streamsift.runtime.analyze import analyze_run
from streamsift.runtime.detect import match_places
from streamsift.runtime.events.bad_rows import BadRows
from streamsift.runtime.events.events import Events
from streamsift.runtime.events.prepare import prepare
from streamsift.runtime.execute import execute, first_rows, output_schema, tables_of
from streamsift.runtime.resources import Budget, count_results, default_limit, limited, limited_batches
from streamsift.runtime.share import execute_many
from streamsift.runtime.state import Changes
from streamsift.runtime.stream import ManyEngine
