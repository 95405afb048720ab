"""What failed before the crash: signatures and their recurrence. Pure: no I/O, no screen."""
