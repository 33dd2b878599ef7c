"""Rankings: best paths, merges and their schedules, windows that move."""
