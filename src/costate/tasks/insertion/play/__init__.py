"""The insertion, played live."""
