"""Arms that fold, hang and stretch cloth."""
