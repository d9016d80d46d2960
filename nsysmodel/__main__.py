"""`python -m nsysmodel`, and what the command `nsysmodel` runs.

A question for the help page is answered at once; everything else goes to the group of commands.
"""

import os
import sys


def main() -> None:
    """Run the command line."""
    # click writes UTF-8 even where the locale is ASCII, so what is not UTF-8 is left to it.
    if sys.argv[1:] in (["--help"], ["-h"]) and sys.stdout.encoding.lower() == "utf-8":
        _help()
        return
    import atexit
    import gc

    # A command makes many values that live to its end; looking through them for cycles again and again takes
    # a twentieth of a small report.
    gc.set_threshold(250_000, 20, 20)
    # No command multiplies large matrices, and the threads for it would take half of numpy's loading time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from nsysmodel.cli.allocation import keep_freed_memory

    keep_freed_memory()
    from nsysmodel.cli import main as command

    # The interpreter looks through all values once more at its end, when the memory is about to go anyway.
    atexit.register(gc.freeze)
    command(prog_name="nsysmodel")


def _help() -> None:
    from nsysmodel.help_page import page, terminal_width

    try:
        sys.stdout.write(page(terminal_width()) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has gone; without this, Python would complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(1)


if __name__ == "__main__":
    main()
