"""All that is read or written: scenes, captures, tracks, pictures, video."""
