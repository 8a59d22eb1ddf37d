"""`lrsa studio`: the page."""

from pathlib import Path

from lrsa.cli.checking import at_least


def studio(runs: Path = Path("runs"), /, port: int | None = None, browser: bool = True) -> None:
    """Open a page on this machine to see, try and compare trained surrogates.

    It lists all runs with their errors and loss curves, follows those in training, and shows predictions on
    test cases and on your own meshes while you move the parameters. Nothing leaves the machine.

    Args:
        runs: A folder of runs, or one run.
        port: The port on 127.0.0.1 (default: any that is free).
        browser: Open the page in the browser.
    """
    from lrsa.studio.app import run_studio

    at_least(1, port=port)
    run_studio(runs, port or 0, browser)
