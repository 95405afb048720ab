"""What a crash left open, judged from events alone: no I/O, no screen."""
