"""What can be said in numbers: so far, how long a frame takes."""
