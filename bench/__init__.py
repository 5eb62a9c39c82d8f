"""Benchmarks, each with a peer in the same process: `make bench`, or `python -m bench [CASE …] [--records N]`."""
