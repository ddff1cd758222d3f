"""What every layer uses: arrays, files, forked processes, and names that were misspelt."""
