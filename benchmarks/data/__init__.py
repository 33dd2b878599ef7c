"""A number of events and a seed in, a pyarrow table of generated events out."""
