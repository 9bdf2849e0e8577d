"""The stages of the pipeline. Each stage has one task. `engine/pipeline.py` defines their order."""
