"""Detection: flat sequences, join trees, condensing, and what a second goes into."""
