"""Find surgical instruments that were used without complete preparation."""

# %% [markdown]
# # Contaminated instruments
#
# Between two operations, an instrument is recycled, washed, sharpened, disinfected, dried, checked and relabeled. Each
# step is an event with the number of the instrument. Which instruments were used in surgery although steps were
# skipped, and which steps?

# %%
import streamsift as ss
from streamsift.command.demo_data import hospital

events = hospital(rows=20_000, seed=7)
print(events.num_rows, "events of", len(events.column("id").unique()), "instruments")

# %% [markdown]
# After washing, an instrument must be sharpened, disinfected and checked, in this order. The negated sequence requires
# that this did **not** happen between washing and the operation. `[id]` requires that all events have the same `id`.

# %%
unprepared = ss.query("""
    PATTERN SEQ(Recycle r, Washing w, !SEQ(Sharpening s, Disinfection d, Checking c), Operating o)
    WHERE [id] AND o.ins_type = 'surgery'
    WITHIN 1 hour
""")
matches = unprepared.run_local(events, time="ts", type="kind")
print(matches.num_rows, "operations with an instrument that was not fully prepared")
assert matches.num_rows > 0

# %% [markdown]
# Most of these instruments were only not sharpened. A missing disinfection is worse. This query finds the operations
# without any disinfection since the washing.

# %%
contaminated = ss.query("""
    PATTERN SEQ(Washing w, !Disinfection d, Operating o)
    WHERE [id] AND o.ins_type = 'surgery'
    WITHIN 1 hour
    RETURN w.id AS instrument, w.ts AS washed, o.ts AS used, o.room AS room
""")
rows = contaminated.run_local(events, time="ts", type="kind")
print(rows.num_rows, "operations with an instrument that was not disinfected; the first:")
print(rows.slice(0, 3).to_pandas().to_string(index=False))
assert 0 < rows.num_rows < matches.num_rows

# %% [markdown]
# Draw the matches of the first query: one lane per instrument, with the interval shaded in which the preparation is
# missing.

# %%
ss.show(matches.slice(0, 15))

# %% [markdown]
# Is it getting better? Count the operations without disinfection every 6 hours, per type of instrument. Streamsift
# counts them without materializing matches.

# %%
trend = ss.query("""
    PATTERN SEQ(Washing w, !Disinfection d, Operating o)
    WHERE [id]
    GROUP BY ins_type AGG COUNT
    WITHIN 6 hours UPDATE 6 hours
""").run_local(events, time="ts", type="kind")
print(trend.to_pandas().groupby("ins_type")["count"].sum().to_string())
ss.plot(trend)
