"""Values that are split over consecutive texts."""
