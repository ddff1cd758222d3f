"""The machine: its target, object code for it, the cache of object code, and worker processes."""
