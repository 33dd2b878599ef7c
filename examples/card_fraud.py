"""Cards that are tried with small payments and then emptied, and the shoppers that spend most on two brands."""

# %% [markdown]
# # Card fraud and brand shoppers
#
# Thirty days of card purchases. A stolen card is often tried with small amounts before a large one is taken, far from
# home. There is no column that says what kind of event a row is: classes are made from the amounts.

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
found = fraud.run_local(events, time="ts")
print(found.num_rows, "cards tried and then used in another city")
assert found.num_rows > 0

# %% [markdown]
# Card numbers are larger than a double can hold, and amounts are decimals: both are compared exactly.

# %%
ss.show(found.slice(0, 12))

# %% [markdown]
# Marketing asks another question: who spends most on Amberline and then on Birchway within ten hours? The five best of
# each window of ten hours, every two hours.

# %%
shoppers = ss.query("""
    PATTERN SEQ(Amberline a, Birchway b)
    WHERE [ccid]
    PREF MAX[spent = a.amount + b.amount]
    WITHIN 10 hours UPDATE 2 hours
    RETURN TOP 5 a.ccid AS card, b.city AS city
""")
ladder = shoppers.run_local(events, time="ts", type="brand")
print(ladder.slice(0, 5).to_pandas().to_string(index=False))
assert max(ladder.column("rank").to_pylist()) == 5
ss.plot(ladder)

# %% [markdown]
# The best of all, whatever the window:

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
