"""Find stolen cards that are tested with small payments, and rank shoppers by what they spend on two brands."""

# %% [markdown]
# # Card fraud and brand shoppers
#
# The data are 30 days of card purchases. Thieves often test a stolen card with small amounts before a large purchase in
# another city. The table has no event type column, so the query defines its event classes from the amounts.

# %%
import streamsift as ss
from streamsift.command.demo_data import purchases

events = purchases(rows=20_000, seed=7)
print(events.slice(0, 3).to_pandas().to_string(index=False))

# %%
fraud = ss.query("""
    PATTERN SEQ(Small a, Small b, Large c)
    WITH Small = (amount <= 5), Large = (amount >= 800)
    WHERE [ccid] AND a.city != c.city
    WITHIN 15 min
""")
matches = fraud.run_local(events, time="ts")
print(matches.num_rows, "cards tested and then used in another city")
assert matches.num_rows > 0

# %% [markdown]
# Card numbers have more digits than a double can represent, and amounts are decimals. Streamsift compares both exactly.
#
# Each match takes minutes, and the matches are spread over days, so the chart shows the time since the first payment.

# %%
ss.show(matches.slice(0, 12))

# %% [markdown]
# Which customers spend most at Amberline and then at Birchway within 10 hours? Rank the top 5 of each 10-hour window,
# every 2 hours.

# %%
shoppers = ss.query("""
    PATTERN SEQ(Amberline a, Birchway b)
    WHERE [ccid]
    PREF MAX[spent = a.amount + b.amount]
    WITHIN 10 hours UPDATE 2 hours
    RETURN TOP 5 a.ccid AS card, b.city AS city
""")
ranking = shoppers.run_local(events, time="ts", type="brand")
print(ranking.slice(0, 5).to_pandas().to_string(index=False))
assert max(ranking.column("rank").to_pylist()) == 5
ss.plot(ranking)

# %% [markdown]
# Without `UPDATE`, the query ranks all matches together:

# %%
best = ss.query("""
    PATTERN SEQ(Amberline a, Birchway b)
    WHERE [ccid]
    PREF MAX[spent = a.amount + b.amount]
    WITHIN 10 hours
    RETURN TOP 3 a.ccid AS card, a.amount AS at_amberline, b.amount AS at_birchway
""").run_local(events, time="ts", type="brand")
print(best.to_pandas().to_string(index=False))
assert best.column("score").to_pylist() == sorted(best.column("score").to_pylist(), reverse=True)
