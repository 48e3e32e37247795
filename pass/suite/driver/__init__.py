"""The driver of the benchmark suite: builds, measures, prints."""
