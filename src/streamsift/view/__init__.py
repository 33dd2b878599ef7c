"""Show results and plans to people: on terminals, in notebooks, as charts and in files.

- `tables`: text tables on the terminal; `match_columns`: which columns of matches they show.
- `notebook`: HTML of queries, explanations and results.
- `pictures`: choose the chart that fits a result, and save it.
- `timeline`: matches over time; `gaps`: the time that their negations cover; `charts`: aggregates and rankings.
- `plan_tree`: a pattern as a tree in SVG.
- `files`: results as JSON lines or flat columns, written batch by batch.

A result with `rank` and `score` is drawn as a ranking, one with `time` as aggregates, any other as a timeline.
"""
