"""Speed and memory of every model, as ratios within one run (paper, efficiency appendix)."""
