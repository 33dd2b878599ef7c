"""Sensors that fall silent, stick or overheat before a machine stops, on Spark."""

# %% [markdown]
# # Sensor faults
#
# Machines report temperature and vibration every few seconds. Before a machine stops, something is often odd: a sensor
# falls silent, or it gets warmer while nobody opens the valve. This story runs on Spark.

# %%
import os
import sys

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

import streamsift as ss

rng = np.random.default_rng(7)
machines, readings = 20, 300
rows = []
for machine in range(machines):
    times = np.cumsum(rng.exponential(5.0, readings))
    heat = 60 + np.cumsum(rng.normal(0, 0.3, readings))
    fails = machine % 5 == 0
    if fails:
        heat[200:] += np.linspace(0, 40, readings - 200)  # it overheats
    for at, celsius in zip(times, heat, strict=True):
        rows.append((at, "Reading", machine, round(float(celsius), 1)))
    if not fails:
        rows += [(at, "Valve", machine, None) for at in times[::60] + 0.1]
    if fails:
        rows.append((times[-1] + 20.0, "Stop", machine, None))
events = pd.DataFrame(rows, columns=["ts", "kind", "machine", "celsius"]).sort_values("ts", kind="stable")
print(len(events), "events")

# %% [markdown]
# Warm, then hot, with no valve opened in between, then a stop: what the machines that failed have in common.

# %%
overheated = ss.query("""
    PATTERN SEQ(Warm w, !Valve v, Hot h, !Valve u, Stop s)
    WITH Warm = (kind = 'Reading' AND celsius > 75), Hot = (kind = 'Reading' AND celsius > 90)
    WHERE [machine]
    WITHIN 600
    RETURN w.machine AS machine, h.ts - w.ts AS seconds_to_hot, s.ts AS stopped
""")

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.appName("sensor faults").getOrCreate()
df = spark.createDataFrame(events)
found = overheated.run(df, time="ts", type="kind")
failed = sorted(row.machine for row in found.select("machine").distinct().toLocalIterator())
print("machines that overheated before they stopped:", failed)
assert set(failed) <= {0, 5, 10, 15}
assert failed

# %% [markdown]
# A sensor that is silent: a reading that no other reading follows for a minute. `!` after the last event looks ahead to
# the end of the window, so such a match is known a minute later.

# %%
silent = ss.query(
    "PATTERN SEQ(Reading r, !Reading n) WHERE [machine] WITHIN 60 RETURN r.machine AS machine, r.ts AS since"
)
last = silent.run_local(events, time="ts", type="kind")
print(last.num_rows, "sensors fell silent")
assert last.num_rows >= machines

# %% [markdown]
# How warm is it while no valve is opened? The mean over pairs of readings, every five minutes.

# %%
warmth = ss.query("""
    PATTERN SEQ(Reading a, !Valve v, Reading b) WHERE [machine]
    AGG COUNT, AVG(b.celsius) AS mean WITHIN 300 UPDATE 300
""").run_local(events, time="ts", type="kind")
ss.plot(warmth)
