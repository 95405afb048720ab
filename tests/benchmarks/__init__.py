"""How fast triage is, as ratios within one run: `python -m tests.benchmarks`."""
