"""Sort the rows of a table by time, and compute the classes, windows and comparisons of its events.

- `prepare`: build the events of a query, with every column that its plan reads; all callers start here
- `events`: hold the sorted events with their ranks and window positions
- `times`: read times as numbers
- `bad_rows`: find rows without a usable time or order
- `unmatched`: warn about classes that no row belongs to
- `candidates`: find the events that each step can bind
- `reach`: compute which events each event can be combined with, given order and windows
- `comparisons`: pack comparisons and lookups for kernels
- `update_ticks`: number the ticks of UPDATE, and convert them to times
- `owned`: state which rows, steps and ticks a task reports
- `stamps`: compute when each event enters and leaves the window

A *place* is the index of an event in time order; a *row* is its index in the table. `Events.rows_at` converts places to
rows, which only the result needs. A *stamp* is a place without UPDATE, and the number of a tick with it.
"""
