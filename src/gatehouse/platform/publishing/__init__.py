"""Publishing of policy: snapshots for workers, and bundles and uploads of outposts."""
