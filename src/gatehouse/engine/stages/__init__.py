"""The stages of the pipeline, one verb each. Their order is in `engine/pipeline.py`."""
