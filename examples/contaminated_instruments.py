"""Surgical instruments that came to an operation without having been prepared as they should."""

# %% [markdown]
# # Contaminated instruments
#
# Instruments go from one operation to the next: recycled, washed, sharpened, disinfected, dried, checked, relabelled,
# used. Each step is an event with the instrument's number. Which instruments were used in surgery although steps were
# left out, and what was wrong with them?

# %%
import streamsift as ss
from streamsift.command.demo_data import hospital

events = hospital(rows=20_000, seed=7)
print(events.num_rows, "events of", len(events.column("id").unique()), "instruments")

# %% [markdown]
# After washing, an instrument must be sharpened, disinfected and checked, in this order. The negated sequence says that
# this did **not** happen between washing and the operation. `[id]` ties all five events to one instrument.

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
# Most of these were just not sharpened. Not being disinfected is worse: here nothing of the kind happened at all.

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
# The picture: a lane for each instrument. The time in which it should have been prepared is shaded.

# %%
ss.show(matches.slice(0, 15))

# %% [markdown]
# Is it getting better? Count the cases in each six hours, by kind of instrument. No match is built for that.

# %%
trend = ss.query("""
    PATTERN SEQ(Washing w, !Disinfection d, Operating o)
    WHERE [id]
    GROUP BY ins_type AGG COUNT
    WITHIN 6 hours UPDATE 6 hours
""").run_local(events, time="ts", type="kind")
print(trend.to_pandas().groupby("ins_type")["count"].sum().to_string())
ss.plot(trend)
