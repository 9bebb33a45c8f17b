"""The paper's experiments on a dataset of captures: training, evaluation, and its tables beside its own numbers."""
