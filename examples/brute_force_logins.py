"""Find password guessing in a login log by counting attempts, without materializing matches."""

# %% [markdown]
# # Brute-force logins
#
# Each login attempt is three events: a user name, a password, and the server's answer. People mistype now and then. A
# program that guesses passwords fails hundreds of times per minute, from one address.

# %%
import numpy as np
import pyarrow as pa

import streamsift as ss

rng = np.random.default_rng(7)


def attempts(count: int, addresses: list[str], begin_s: float, gap_s: float, failing: float) -> dict[str, np.ndarray]:
    """Return login attempts of three events each, `gap_s` seconds apart on average."""
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
# How many rejected attempts does each address have within 10 seconds? The count covers all combinations of the three
# steps in the window, so it explodes for a guessing program. The cost per event stays the same, because Streamsift
# counts matches without materializing them; the plan says how.

# %%
guessing = ss.query("""
    PATTERN SEQ(TypeUsername u, TypePassword p, Rejected r)
    GROUP BY ip AGG COUNT, MAX(r.latency_ms)
    WITHIN 10
""")
plan = guessing.explain(events, time="ts", type="kind")
print(plan[plan.index("Why") :].splitlines()[1].strip())
counted = guessing.run_local(events, time="ts", type="kind").to_pandas()
worst = counted.groupby("ip")["count"].max().sort_values(ascending=False)
print(worst.head(3).to_string())
assert worst.index[0] == "203.0.113.9"
assert worst.iloc[0] > 100 * worst.iloc[1]

# %% [markdown]
# Did a guess succeed? Look for at least 20 rejections followed by an accepted login from the same address, all within a
# minute.

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
# Plot the number of rejected attempts per minute.

# %%
per_minute = ss.query("""
    PATTERN SEQ(TypeUsername u, TypePassword p, Rejected r)
    WHERE r.ts - u.ts < 1 AND [ip]
    AGG COUNT WITHIN 60 UPDATE 60
""").run_local(events, time="ts", type="kind")
ss.plot(per_minute)
