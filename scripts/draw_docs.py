"""Draw the charts of the documentation into docs/images, as the page on charts describes them."""

from __future__ import annotations

from pathlib import Path

import streamsift as ss
from streamsift.command.demo_data import hospital, purchases

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"


def main() -> None:
    instruments, cards = hospital(20_000, 7), purchases(20_000, 7)
    skipped = ss.query(
        "PATTERN SEQ(Recycle r, Washing w, !SEQ(Sharpening s, Disinfection d, Checking c), Operating o) "
        "WHERE [id] AND o.ins_type = 'surgery' WITHIN 1 hour"
    )
    matches = skipped.run_local(instruments, time="ts", type="kind")
    ss.show(matches.slice(0, 12)).save(str(IMAGES / "timeline.svg"))
    plan = skipped.explain(instruments, time="ts", type="kind")
    (IMAGES / "plan.svg").write_text(plan.svg + "\n", encoding="utf-8")
    fraud = ss.query(
        "PATTERN SEQ(Small a, Small b, Large c) WITH Small = (amount <= 5), Large = (amount >= 800) "
        "WHERE [ccid] AND a.city != c.city WITHIN 15 min"
    )
    ss.show(fraud.run_local(cards, time="ts").slice(0, 12)).save(str(IMAGES / "elapsed.svg"))
    shoppers = ss.query(
        "PATTERN SEQ(Amberline a, Birchway b) WHERE [ccid] PREF MAX[spent = a.amount + b.amount] "
        "WITHIN 10 hours UPDATE 1 hour RETURN TOP 5 a.ccid AS card, a.city AS city"
    )
    ss.plot(shoppers.run_local(cards, time="ts", type="brand")).save(str(IMAGES / "bump_chart.svg"))
    counted = ss.query(
        "PATTERN SEQ(Washing w, Operating o) WHERE [id] GROUP BY ins_type AGG COUNT WITHIN 2 hours UPDATE 1 hour"
    )
    ss.plot(counted.run_local(instruments, time="ts", type="kind")).save(str(IMAGES / "counts.svg"))


if __name__ == "__main__":
    main()
