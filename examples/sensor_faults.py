"""Find machines that overheat and sensors that stop reporting, on Spark."""

# %% [markdown]
# # Sensor faults
#
# Machines report their temperature every few seconds. Before a machine stops, it often overheats while nobody opens the
# valve, or a sensor stops reporting. The first query of this example runs on Spark.

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
# Find machines that were warm, then hot, then stopped, with no valve opened in between.

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
matches = overheated.run(df, time="ts", type="kind")
failed = sorted(row.machine for row in matches.select("machine").distinct().toLocalIterator())
print("machines that overheated before they stopped:", failed)
assert set(failed) <= {0, 5, 10, 15}
assert failed

# %% [markdown]
# Find sensors that stopped reporting: a reading that no other reading follows for a minute. A negation after the last
# event covers the time until the end of the window, so on a stream such a match is emitted a minute later.

# %%
silent = ss.query(
    "PATTERN SEQ(Reading r, !Reading n) WHERE [machine] WITHIN 60 RETURN r.machine AS machine, r.ts AS since"
)
last = silent.run_local(events, time="ts", type="kind")
print(last.num_rows, "times a sensor was silent for a minute")
assert last.num_rows >= machines

# %% [markdown]
# How warm are the machines while no valve is opened? Plot the mean over pairs of readings, every 5 minutes.

# %%
warmth = ss.query("""
    PATTERN SEQ(Reading a, !Valve v, Reading b) WHERE [machine]
    AGG COUNT, AVG(b.celsius) AS mean WITHIN 300 UPDATE 300
""").run_local(events, time="ts", type="kind")
ss.plot(warmth)
