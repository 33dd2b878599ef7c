"""Show results and plans to people: on terminals, in notebooks, as charts and in files.

- `tables`: text tables on the terminal; `match_columns`: which columns of matches they show.
- `notebook`: HTML of queries, explanations and results.
- `plots`: choose the chart that fits a result, and save it; `offline`: charts that need no network.
- `timeline`: matches over time; `gaps`: the intervals that their negations cover.
- `aggregates`: measures over time; `rankings`: bump charts and scores; `axes`: time axes of all charts.
- `plan_tree`: a pattern as a tree in SVG.
- `files`: results as JSON lines or flat columns, written batch by batch.

A result with `rank` and `score` is drawn as a ranking, one with `time` as aggregates, any other as a timeline.
"""
