"""Run stories: `python -m tests.simulation --seeds 1000`, or one of them: `--seed 17`.

The program's persistent maps have another order in every process, and text hashes differently. So before anything of
the program is imported the maps are replaced by ones that keep their order, and the process starts itself again with
PYTHONHASHSEED=0 where that is not set. `--any-order` leaves everything as it is in production, and no run repeatable.
"""

import os
import sys

from tests.simulation.ordered import install


def _main() -> int:
    if "--any-order" not in sys.argv:
        if os.environ.get("PYTHONHASHSEED") != "0":
            again = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
            os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606 - no shell needed
        install()
    from tests.simulation.command import main  # noqa: PLC0415 - imports the program, see above

    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(_main())
