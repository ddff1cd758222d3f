"""The insertion in MuJoCo, an independent engine."""
