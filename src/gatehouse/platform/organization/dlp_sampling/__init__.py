"""Whether samples of an organization's requests are kept, and for how long: DLP rules are tried out on them.

off <-> on     PUT `share`
"""
