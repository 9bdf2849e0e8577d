"""The archive's storage: places, files, the manifest and checkpoints."""
