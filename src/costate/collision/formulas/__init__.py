"""Contact points of pairs that have a formula of their own, one file for each."""
