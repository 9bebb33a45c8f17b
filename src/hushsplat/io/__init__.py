"""Readers and writers: scenes, captures, tracks, pictures, video, weights."""
