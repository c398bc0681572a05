"""Which runs: fractions, the matrix, replicates, blocks and order, power."""
