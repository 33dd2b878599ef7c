"""Plan how a row pattern (MATCH_RECOGNIZE) is matched.

- `plan`: the plan of a clause
- `program`: compile the pattern to instructions, and list the labels that may follow each label
- `conditions`: split conditions into parts of the row alone and parts of the match
- `match_code`: compile conditions of the match to instructions on words
- `registers`: the rows and aggregates that these conditions read, and which of them the rest of a match reads
- `opcodes`: the numbers of instructions and registers, which the matcher shares
- `explain`: describe the plan

Conditions of the row alone become bits of the row. Failed states, a label and a row, are kept for every start if the
rest of the match reads bits only; otherwise with the registers that it reads.
"""

from streamsift.physical.row_match import opcodes
from streamsift.physical.row_match.explain import explain_rows
from streamsift.physical.row_match.match_code import Source, WordKind
from streamsift.physical.row_match.plan import MAX_STEPS_PER_ROW, RowPlan, plan_rows
from streamsift.physical.row_match.program import DONE, NEEDS_END, NEEDS_START
