"""Parts that grow: what is shown of them, its colours, and pictures."""
