"""Code generation, from programs to LLVM IR: tapes, chunks, lowering, and the loop over lane blocks."""
