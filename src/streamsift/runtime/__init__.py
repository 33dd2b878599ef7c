"""Evaluate plans on Arrow tables, without Spark: columnar events, Numba kernels, Arrow batches.

- `execute`: run a plan of any strategy on a table, and name the columns of its result; `analyze`: what a run measured.
- `detect`, `count`, `rank`: the strategies: find all matches, count them, or find the k best.
- `share`: run many plans on one table; `stream`: feed events bit by bit, and emit rows when they are final.
- `groups`, `negation`, `paths`: searches that the strategies use: Kleene groups, negated parts, best paths.
- `matches`: what expressions and results see of matches; `state`: events and numbers kept between micro-batches.
- `events`, `expressions`, `arrays`: events in time order, values of columns, and kernels that know no plan.
- `input`: read files and frames; `resources`: memory budgets and progress.
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
