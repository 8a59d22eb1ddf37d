"""Errors whose text is meant for the user: the thing, the reason, the cure, in one line."""

import difflib
import errno
from collections.abc import Iterable

NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
"""What the system answers where a disk, or one's share of it, is full."""


class LrsaError(Exception):
    """A mistake in what was asked or given. The command line prints it as one line and exits with 2."""

    exit_code = 2

    @property
    def lines(self) -> list[str]:
        """What is to be said, a problem in each line; the names in it may have line breaks of their own."""
        return [" ".join(str(self).splitlines())]


class Failure(LrsaError):
    """Something that was asked for rightly and went wrong: exit code 1."""

    exit_code = 1


class Interrupted(LrsaError):
    """The user stopped it: exit code 130, as of a program that Ctrl-C ends."""

    exit_code = 130


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean darcy?` for `darci`, or nothing when no known name is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" Did you mean {close[0]}?" if close else ""
