"""Find price reversals: a fall and a rise within a few trades."""

# %% [markdown]
# # Stock reversals
#
# The data are trades of 20 stocks, about 100 per second, many of them with equal times. `PARTITION BY symbol` searches
# each stock separately, and `WITHIN 12 EVENTS` counts the trades of that stock.

# %%
import streamsift as ss
from streamsift.command.demo_data import ticks

events = ticks(rows=20_000, seed=7)

# %%
dips = ss.query("""
    PATTERN SEQ(ANY before, ANY dip, ANY after)
    PARTITION BY symbol
    WHERE dip.price < before.price * 0.998 AND after.price > before.price AND dip.volume >= 1000
    WITHIN 12 EVENTS
""")
matches = dips.run_local(events, time="ts")
print(matches.num_rows, "dips")
assert matches.num_rows > 0
ss.show(matches.slice(0, 12))

# %% [markdown]
# With Kleene closure, all trades below the first price form one maximal group. A match is then a whole valley instead
# of every choice of three of its trades.

# %%
valleys = ss.query("""
    PATTERN SEQ(ANY before, ANY+ low, ANY after)
    PARTITION BY symbol
    WHERE low.price < before.price AND after.price > before.price * 1.0005 AND COUNT(low) >= 8
    WITHIN 12 EVENTS
    RETURN before.symbol AS symbol, before.price AS before,
           MIN(low.price) AS lowest, COUNT(low) AS trades, after.price AS after
""").run_local(events, time="ts")
print(valleys.num_rows, "valleys")
print(valleys.slice(0, 3).to_pandas().to_string(index=False))
assert min(valleys.column("trades").to_pylist()) >= 8

# %% [markdown]
# Three stocks in a row, with no key in common: the planner chooses the join tree from statistics of the data. With
# `analyze=True`, `explain` runs the query and prints the estimated and actual number of rows of each join.

# %%
chain = ss.query("""
    PATTERN DELL; IPIX; AMAT
    WHERE DELL.volume > 800 AND ABS(DELL.price - IPIX.price) < ABS(IPIX.price - AMAT.price)
    WITHIN 500 ms
""")
plan = chain.explain(events, time="ts", type="symbol", analyze=True)
print(plan[plan.index("Analyzed") :])

# %% [markdown]
# Rank the three sharpest falls of the last 2 seconds, every second.

# %%
sharpest = ss.query("""
    PATTERN SEQ(ANY before, ANY dip)
    PARTITION BY symbol
    PREF MAX[fall = before.price - dip.price]
    WITHIN 2 s UPDATE 1 s
    RETURN TOP 3 dip.symbol AS symbol, before.price AS before, dip.price AS price
""").run_local(events, time="ts")
print(sharpest.num_rows, "rows")
assert set(sharpest.column("rank").to_pylist()) == {1, 2, 3}
ss.plot(sharpest)
