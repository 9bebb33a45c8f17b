"""Image quality and frame times: metrics, experiments, results and reports (docs/evaluation.md)."""
