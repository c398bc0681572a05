"""Statistics of factors with any number of levels: pure functions on arrays.

`layout` says what is given, `coding` turns levels into contrasts, `model` chooses what the runs
can estimate, `fit` is the least squares, and one file each holds what follows from it: `anova`,
`means`, `effects`, `best`, `predictions`, `permutation`, `mixed`. `plan` tells what a design can
and cannot estimate or see before anything runs, `analyze` puts all of it into one frozen value,
and `sentences` says it in words.
"""
