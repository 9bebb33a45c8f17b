"""What engines execute: settings, state layout, passes, weights and random numbers, declared once."""
