"""Training: stages 1 to 4 of a scene, zero-shot weights, and the runner that checkpoints and resumes.

`settings` and `api` import without PyTorch; everything else needs it.
"""
