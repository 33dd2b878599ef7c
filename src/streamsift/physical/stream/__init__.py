"""Plan how a query runs on a stream: when rows become final, what is retained for them, what cannot be had.

- `plan`: collect every decision of a stream in one `StreamPlan`, and refuse what a stream cannot have;
- `final`: derive what a match waits for besides its last event, and which windows state must cover;
- `finalizing_steps`: mark the event that makes a match final, so that only newly final matches are built.

Matches are found from finalizing events (`DecideBy.MATCHES`). Totals are continued from counters without a window
(`RUNNING_TOTALS`) or from two stacks within one (`WINDOW_TOTALS`); all other totals, and ranks, are recomputed from the
events of the window (`RECOMPUTED`), and `StreamPlan.why_recomputed` says why.
"""

from streamsift.physical.stream.final import StateWindow, counts_rows, is_awaited, looks_back
from streamsift.physical.stream.finalizing_steps import DECIDES, OTHER, FinalizedAlternative, FinalizedBy
from streamsift.physical.stream.plan import DecideBy, StreamPlan, stream_plan
