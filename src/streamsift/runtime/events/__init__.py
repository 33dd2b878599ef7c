"""Put the rows of a table in order of time, and compute what order, windows and classes say of each event.

- `prepare`: makes the events of a query, with every column that its plan may read; all callers begin here
- `events`: holds the events: places in order of time, their ranks and window positions
- `times`: reads times as numbers
- `bad_rows`: finds rows that cannot be placed in time
- `relevant`: drops events that no step may bind
- `candidates`: finds the places that each step may bind
- `class_names`: finds the types among the class names of a query
- `reach`: computes which places order and windows let events be combined with
- `definition_windows`: computes how far windows reach, and those of definitions
- `comparisons`: packs comparisons and lookups for kernels
- `order_kernels`: ranks and limits places, compiled
- `ties`: ranks events for breaking ties
- `update_ticks`: numbers the ticks of UPDATE, and writes them as times
- `owned`: says which rows, steps and ticks one task reports
- `stamps`: tells when events are first shown, and when they leave the window

A *place* is an event's position in order of time, a *row* its number in the table; `Events.rows_at` leads from one to
the other, and only the result needs rows. Stamps are places without UPDATE, and numbers of ticks with it.
"""
