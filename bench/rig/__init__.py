"""The parts of the benchmarks. Most of them need only the standard library."""
