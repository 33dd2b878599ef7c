"""Passwords that are guessed until one fits: counting attempts without building a single match."""

# %% [markdown]
# # Brute-force log-ins
#
# A log of log-ins: somebody types a name, a password, and submits; the server accepts or rejects. Most people err now
# and then. A program that guesses does so hundreds of times a minute, from one address.

# %%
import numpy as np
import pyarrow as pa

import streamsift as ss

rng = np.random.default_rng(7)


def attempts(count: int, addresses: list[str], begin_s: float, gap_s: float, failing: float) -> dict[str, np.ndarray]:
    """Log-in attempts, a name, a password and an answer each, `gap_s` apart on average."""
    start = begin_s + np.cumsum(rng.exponential(gap_s, count))
    answers = np.where(rng.random(count) < failing, "Rejected", "Accepted")
    kinds = np.stack([np.full(count, "TypeUsername"), np.full(count, "TypePassword"), answers], axis=1)
    times = start[:, None] + np.array([0.0, 0.4, 0.9])
    return {
        "ts": times.ravel(),
        "kind": kinds.ravel(),
        "ip": np.repeat(rng.choice(addresses, count), 3),
        "latency_ms": np.round(rng.gamma(3.0, 20.0, 3 * count), 1),
    }


people = attempts(4_000, [f"10.0.0.{n}" for n in range(200)], 0.0, 5.0, failing=0.08)
attack = attempts(600, ["203.0.113.9"], 9_000.0, 0.3, failing=0.998)
parts = {name: np.concatenate([people[name], attack[name]]) for name in people}
order = np.argsort(parts["ts"], kind="stable")
events = pa.table({name: values[order] for name, values in parts.items()})
print(events.num_rows, "events")

# %% [markdown]
# How many rejected attempts does each address have within ten seconds? Their number is that of all combinations of the
# three steps in the window: for a guessing program it explodes, and counting costs the same for each event all along.

# %%
guessing = ss.query("""
    PATTERN SEQ(TypeUsername u, TypePassword p, Rejected r)
    GROUP BY ip AGG COUNT, MAX(r.latency_ms)
    WITHIN 10
""")
told = guessing.explain(events, time="ts", type="kind")
print(told[told.index("Why") :].splitlines()[1])
counted = guessing.run_local(events, time="ts", type="kind").to_pandas()
worst = counted.groupby("ip")["count"].max().sort_values(ascending=False)
print(worst.head(3).to_string())
assert worst.index[0] == "203.0.113.9"
assert worst.iloc[0] > 100 * worst.iloc[1]

# %% [markdown]
# Did one of the guesses fit? After at least twenty rejections, an acceptance from the same address within a minute.

# %%
broken_in = ss.query("""
    PATTERN SEQ(Rejected+ r, Accepted a)
    WHERE [ip] AND COUNT(r) >= 20
    WITHIN 60
    RETURN a.ip AS ip, COUNT(r) AS rejected, a.ts AS at
""").run_local(events, time="ts", type="kind")
print(broken_in.to_pandas().to_string(index=False))
assert set(broken_in.column("ip").to_pylist()) <= {"203.0.113.9"}

# %% [markdown]
# The attack as a picture: attempts in the last minute, every minute.

# %%
per_minute = ss.query("""
    PATTERN SEQ(TypeUsername u, TypePassword p, Rejected r)
    WHERE r.ts - u.ts < 1 AND [ip]
    AGG COUNT WITHIN 60 UPDATE 60
""").run_local(events, time="ts", type="kind")
ss.plot(per_minute)
