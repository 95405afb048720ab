"""Interactive crash triage for the logs of AI agents: it shows, it asks, it appends."""

__version__ = "0.1.0"
