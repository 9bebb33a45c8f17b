"""Plain data and maths: cameras, tracks, Gaussians, captures, images, observations. Numpy only."""
