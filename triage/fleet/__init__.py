"""Many sessions: which files are logs, one row each, the worst first."""
