"""Plan how a query runs on a stream: when rows become final, what is retained, what is not supported.

- `plan`: collect all decisions in one `StreamPlan`; raise if a stream cannot run the query;
- `final`: derive which times make a match final, and which windows state must cover;
- `parts`: plan totals and rankings over all keys as parts that are merged;
- `finalizing_steps`: mark the event that makes a match final, so that only newly final matches are built;
- `ordered`: decide whether the promise that events arrive in order can be used.

Matches are found from finalizing events (`DecideBy.MATCHES`). Totals are updated incrementally, from counters without a
window (`RUNNING_TOTALS`) or from two stacks with one (`WINDOW_TOTALS`). All other totals, and rankings, are recomputed
from the events of the window (`RECOMPUTED`); `StreamPlan.why_recomputed` gives the reason.
"""

from streamsift.physical.stream.final import Awaited, StateWindow, counts_rows, is_awaited, looks_back
from streamsift.physical.stream.finalizing_steps import DECIDES, OTHER, FinalizedAlternative, FinalizedBy
from streamsift.physical.stream.ordered import Ordered, ordered_columns, used_order, why_unordered
from streamsift.physical.stream.parts import aggregates_of_part, part_plan
from streamsift.physical.stream.plan import DecideBy, StreamPlan, stream_plan
