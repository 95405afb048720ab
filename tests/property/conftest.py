"""One fixed profile for every property: the same examples on every run, and no clock that can fail one."""

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, database=None, print_blob=False)
settings.load_profile("fixed")
