"""Programs run by hand: training, benchmarks, and what looks for faults longer than a test may."""
