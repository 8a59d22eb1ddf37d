"""Several models of one run, alike but for their seeds: their mean predicts, their spread doubts.

They share a run folder: the first member is the run itself, the others are `members/1`, `members/2`, ...,
each a run of its own with the same training cases, the same validation cases and the next seed.
"""

from pathlib import Path

import numpy as np

FOLDER = "members"


def member_folder(run: Path, index: int) -> Path:
    """Of the member with this number; 0 is the run itself."""
    return run / FOLDER / str(index) if index else run


def mean_of(answers: np.ndarray) -> np.ndarray:
    """(K, ...) -> (...) the mean over members; a single one stays the same bits."""
    return answers[0] if len(answers) == 1 else answers.mean(0, dtype=np.float64).astype(answers.dtype)
