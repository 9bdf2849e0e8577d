"""`python -m gatehouse.detection.service`: the process, as the supervisor starts it."""

from gatehouse.detection.service.process import run

run()
