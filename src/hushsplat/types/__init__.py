"""Plain data and maths that everything else stands on: cameras, tracks, Gaussians, the stream. Numpy only."""
