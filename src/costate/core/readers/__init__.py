"""Files of unknown origin: text, JSON and arrays, read within limits."""
