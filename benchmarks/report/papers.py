"""List the figures of the papers that measure something: the finding in our words, and the rule for a run."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.report.findings import (
    exactly_three_is_least,
    findings,
    flat,
    gains,
    gains_less,
    gains_more,
    grows,
    later_take_longer,
    least_is,
    most_is,
    shrinks,
    winners_differ,
)

CPR = "*CPR: Complex Pattern Ranking*"
AGGREGATION = "*Online Aggregation of Stream Sequence Patterns*"
NESTED = "*Processing Nested Complex Sequence Pattern Queries*"
CONDENSED = "*Sequence Event Detection through Condensed Composition*"
KLEENE = "*Kleene Operators on Binary Tree-based Directed Graph*"
PICTURES = {AGGREGATION: "aggregation", NESTED: "nested", CONDENSED: "condensed", KLEENE: "kleene", CPR: "cpr"}

ALONE, SHARED = "one by one", "run_many"
BUILT, COUNTED = "detect", "two-stack"
D_YEN, K_DSSP = "D-Yen", "k-DSSP"
ROUND_ROBIN, WABS = "round-robin", "wabs"
STATIC, DYNAMIC = "nTMM", "dTMM"
SUB_QUERIES, THEIR_LENGTH, NESTING = "number of sub-queries", "length of the sub-query", "nesting level"
OFF, ON = "condense=off", "condense=on"
WABS_GAINS_MORE = gains_more(ROUND_ROBIN, WABS)
KEEPING_GAINS_MORE = gains_more(STATIC, DYNAMIC)
PATHS_GAIN_MORE = gains_more(D_YEN, K_DSSP)
SHARING_GAINS_MORE = gains_more(ALONE, SHARED)

FINDINGS = (
    *findings(
        AGGREGATION,
        "aggregation",
        ("figure 12a", "the time to count hardly depends on the pattern's length", flat(1.5), "figure 12"),
        ("figure 12b", "counters need less memory than matches", gains(1, BUILT, COUNTED), "memory of figure 12"),
        ("figure 13a", "the time to count grows with the window", grows(), "figure 13"),
        ("figure 13b", "the memory of counters grows with the window", grows(), "memory of figure 13"),
        ("figure 14a", "no slowdown up to length 10", flat(1.5)),
        ("figure 14b", "a negation costs almost nothing", flat(1.2)),
        ("figure 15", "building matches takes 100 times as long as shared counting", gains(100, BUILT, "chop")),
        ("figure 16a", "sharing a prefix halves the time of 2 to 6 queries", gains(1.8, ALONE, SHARED)),
        ("figure 16b", "the longer the common prefix, the greater the gain", SHARING_GAINS_MORE),
        ("figure 16c", "chop-connect gains more the longer the common part", SHARING_GAINS_MORE),
        ("figure 16d", "chop-connect gains more with more queries", SHARING_GAINS_MORE),
    ),
    *(
        replace(each, queries_are_contenders=True)
        for each in findings(
            NESTED,
            "nested",
            ("figure 6a", "more negated sub-queries take longer", later_take_longer("q1", "q3"), SUB_QUERIES),
            ("figure 6b", "longer negated sub-queries take longer", later_take_longer("q4", "q6"), THEIR_LENGTH),
            ("figure 6c", "deeper nesting takes longer", later_take_longer("q7", "q9"), NESTING),
        )
    ),
    *findings(
        NESTED,
        "nested",
        ("figure 8", "caching the inner sub-query saves time", gains(1, "inner again", "inner cached"), "q10"),
    ),
    *findings(
        CONDENSED,
        "condensed",
        ("figure 8a", "condensing is faster at every window", gains(1, OFF, ON), "window"),
        ("figure 8b", "condensing is faster for every number of classes", gains(1, OFF, ON), "classes"),
        ("figure 8c", "on stock quotes, condensing gains more as the window grows", gains_more(OFF, ON), "Query 3"),
    ),
    *findings(
        KLEENE,
        "shapes",
        ("figure 7a", "the fastest shape depends on the position of the Kleene group", winners_differ, "figure 7"),
        (
            "figure 7b",
            "with the Kleene group last, the bushy shape needs the most memory",
            most_is("plan=bushy"),
            "memory of figure 7: A; B; C; D+",
        ),
        ("figure 8a", "the fastest shape depends on the populations", winners_differ, "figure 8"),
        (
            "figure 8b",
            "with the Kleene group last, the inner shape needs the least memory",
            least_is("plan=inner"),
            "memory of figure 8: D; C; B; A+",
        ),
        ("figure 9a", "the shape that gains from a predicate depends on its position", winners_differ, "figure 9"),
        (
            "figure 9b",
            "a more selective predicate on the first pair saves memory in the left-deep shape",
            shrinks("plan=left"),
            "memory of figure 9: A; B; C; D+, A.x",
        ),
        ("figure 10a", "longer windows take longer", grows(), "figure 10: A; B; C; D+"),
        ("figure 10b", "longer windows need more memory", grows(), "memory of figure 10: A; B; C; D+"),
        (
            "figure 11a",
            "exactly three events are faster than + and * at every position",
            exactly_three_is_least("plan=right"),
            "figure 11",
        ),
        (
            "figure 11b",
            "at the last position, exactly three events need less memory than + and *",
            exactly_three_is_least("plan=right"),
            "memory of figure 11, 4",
        ),
    ),
    *findings(
        CPR,
        "ranking",
        (
            "figure 4.1",
            "Yen's algorithm is faster if it keeps the paths that remain when the window moves",
            gains(1, "Yen", D_YEN),
            "figure 4.3b",
        ),
        ("figure 4.2", "best paths are almost 1,000 times as fast as Yen's", gains(500, D_YEN, "best paths")),
        (
            "figure 4.2",
            "best paths are almost 1,000 times as fast as enumerating all matches",
            gains(500, "enumerate", "auto"),
            "window 5,000, k 100, whole engine",
        ),
        ("figure 4.3a", "the gain over Yen's grows with k", PATHS_GAIN_MORE),
        ("figure 4.3b", "the gain over Yen's grows with the window", PATHS_GAIN_MORE),
        ("figure 4.3c", "the gain over Yen's grows with the length", PATHS_GAIN_MORE),
        ("figure 4.3d", "the gain over Yen's falls with the step", gains_less(D_YEN, K_DSSP)),
        ("figure 4.3e", "the gain over Yen's grows with the frequency of the last class", PATHS_GAIN_MORE),
    ),
    *findings(
        CPR,
        "merging",
        ("figure 4.4", "WABS is the fastest schedule for every k", least_is(WABS)),
        ("figure 4.5a", "WABS gains more if fewer sequences can be joined", WABS_GAINS_MORE),
        ("figure 4.5b", "WABS gains more if one sequence must follow the other", WABS_GAINS_MORE),
        ("figure 4.5c", "WABS gains most with MERGE MIN", WABS_GAINS_MORE),
        ("figure 4.5d", "WABS gains more if lengths differ", WABS_GAINS_MORE),
        ("figure 4.6", "with three sequences, WABS gains more if one must come last", WABS_GAINS_MORE),
        ("figures 4.4 to 4.6", "WABS reads less than round-robin", gains(1, ROUND_ROBIN, WABS), "accesses of figure"),
        ("figure 4.9a", "keeping joins gains more with smaller steps", KEEPING_GAINS_MORE),
        ("figure 4.9b", "keeping joins gains more with larger windows", KEEPING_GAINS_MORE),
        ("figure 4.9c", "keeping joins gains more with a larger k", KEEPING_GAINS_MORE),
        ("figure 4.9d", "keeping joins gains more if one sequence must follow the other", KEEPING_GAINS_MORE),
        (
            "figure 4.10a",
            "keeping joins saves time for scores that are not sums",
            gains(1.2, STATIC, DYNAMIC),
            "figure 4.10: S7; S8",
        ),
        ("figure 4.10b", "and gains more if one sequence must follow the other", KEEPING_GAINS_MORE, "figure 4.10"),
    ),
    *findings(
        CPR,
        "schedules",
        ("figure 4.7a", "WABS gains more the more the costs of two queues differ", WABS_GAINS_MORE),
        ("figure 4.7b", "WABS gains more the more the costs of three queues differ", WABS_GAINS_MORE),
        ("figure 4.8a", "WABS gains more with a larger k", WABS_GAINS_MORE),
        ("figure 4.8b", "WABS gains most with MERGE MIN", WABS_GAINS_MORE),
        ("figure 4.8c", "WABS gains more if fewer entries can be joined", WABS_GAINS_MORE),
        (
            "figure 4.8d",
            "WABS gains more for normally distributed scores than for Zipf-distributed ones",
            WABS_GAINS_MORE,
        ),
    ),
)
