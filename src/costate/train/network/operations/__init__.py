"""Operations of torch, said in steps: `table.ROWS`."""
