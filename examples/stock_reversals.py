"""Prices that turn: a fall and a rise within a few trades, and runs of falling trades that end above their start."""

# %% [markdown]
# # Stock reversals
#
# Trades of twenty stocks, about a hundred a second, many at the same time. `PARTITION BY symbol` makes one stream of
# each stock, and `WITHIN 12 EVENTS` counts its own trades.

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
found = dips.run_local(events, time="ts")
print(found.num_rows, "dips")
assert found.num_rows > 0
ss.show(found.slice(0, 12))

# %% [markdown]
# With Kleene closure, all trades below the first price are one group, as large as it can be. A match is then a whole
# valley instead of each way to pick three trades of it.

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
# Three stocks in a row, none of whose events share a key: the tree of joins is chosen by what is measured in the data.
# `analyze` runs the query and tells what was expected and what was built.

# %%
chain = ss.query("""
    PATTERN DELL; IPIX; AMAT
    WHERE DELL.volume > 800 AND ABS(DELL.price - IPIX.price) < ABS(IPIX.price - AMAT.price)
    WITHIN 500 ms
""")
told = chain.explain(events, time="ts", type="symbol", analyze=True)
print(told[told.index("Analyzed") :])

# %% [markdown]
# The three sharpest falls of the last two seconds, every second: who leads, and for how long.

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
