"""Seeded, bounded fuzzing of study files, files of a study, options and tables."""
