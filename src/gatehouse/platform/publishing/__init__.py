"""Publishes policies: snapshots for workers, and bundles for outposts. Also stores the uploads of outposts."""
