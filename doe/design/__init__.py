"""The runs of a study: fractions, the matrix, replicates, blocks and order, power."""
