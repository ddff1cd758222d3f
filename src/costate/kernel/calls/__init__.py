"""Calls of compiled code: tensors as words, outputs, sums over the batch, threads."""
