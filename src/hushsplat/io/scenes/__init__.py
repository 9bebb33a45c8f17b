"""Scene files: PLY, .splat, SPZ, SOG."""
