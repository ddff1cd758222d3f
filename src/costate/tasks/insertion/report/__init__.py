"""The report of an insertion run."""
