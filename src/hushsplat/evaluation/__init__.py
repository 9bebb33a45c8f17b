"""What can be said in numbers: how good a picture is, and how long a frame takes (docs/measuring.md)."""
