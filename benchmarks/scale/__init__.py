"""Detection on Spark as events, queries and results grow."""
