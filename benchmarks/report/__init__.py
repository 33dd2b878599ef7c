"""Write PERFORMANCE.md and its charts from the records of runs."""
