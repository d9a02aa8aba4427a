"""A start without its configuration."""

import subprocess
import sys
from pathlib import Path

from tests.e2e.harness import ROOT, clean_environment
from tests.store.harness import CA, one_more, opened, start


def test_a_start_without_the_file_is_one_clear_line(tmp_path: Path) -> None:
    """F75: the configuration was deleted and the pod restarted. Exit code 2; database and machines are left alone."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    before = database.read_bytes()
    missing = tmp_path / "config.yaml"
    command = ["serve", "--config", str(missing), "--database", str(database)]
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *command],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {missing}: there is no such file\n")
    assert database.read_bytes() == before
