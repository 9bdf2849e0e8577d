"""The parts of the benchmark. The standard library is enough for all of them but `scale.py`'s rows."""
