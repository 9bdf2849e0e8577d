"""`python -m gatehouse.detection.service`: the detection process, which the supervisor starts."""

from gatehouse.detection.service.process import run

run()
