"""Stand-ins for the real backend, for tests, fuzzing and benchmarks."""
