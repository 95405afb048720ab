"""A file of events: read through an index, and only ever appended to."""
