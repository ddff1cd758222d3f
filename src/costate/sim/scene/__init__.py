"""What a world holds, as one model, and which of its shapes may touch."""
