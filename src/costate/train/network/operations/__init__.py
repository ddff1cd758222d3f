"""What torch computes, said in steps: `table.ROWS`."""
