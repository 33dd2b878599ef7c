"""Put the rows of a table in order of time, and compute what order, windows and classes say of each event.

- `prepare`: make the events of a query, with every column that its plan may read; all callers begin here
- `events`: hold the events: places in order of time, their ranks and window positions
- `times`: read times as numbers
- `bad_rows`: find rows that cannot be placed in time
- `unmatched`: warn about classes that no row belongs to
- `candidates`: find the places that each step may bind
- `reach`: compute which places order and windows, also those of definitions, let events be combined with
- `comparisons`: pack comparisons and lookups for kernels
- `update_ticks`: number the ticks of UPDATE, and write them as times
- `owned`: state which rows, steps and ticks one task reports
- `stamps`: compute when events are first shown, and when they leave the window

A *place* is an event's position in order of time, a *row* its number in the table; `Events.rows_at` leads from one to
the other, and only the result needs rows. Stamps are places without UPDATE, and numbers of ticks with it.
"""
