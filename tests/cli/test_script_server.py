"""`script-server`: what it refuses before it serves."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.cli import scripts
from app.errors import ConfigurationError

CONFIG = """\
node_groups:
  gpu: {instance_type: 1A100.22V, image: ubuntu-24.04, max_size: 1, location: FIN-01}
"""


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("gehe\u00efm".encode(), "must hold printable ASCII characters: make a token with `openssl rand -hex 32`"),
        (b"two\nlines", "must hold printable ASCII characters: make a token with `openssl rand -hex 32`"),
        (b"\xff", "cannot be read: UnicodeDecodeError"),
        (b" \n", "holds no token"),
    ],
)
def test_a_token_that_no_header_can_show_is_refused_at_the_start(token: bytes, words: str, tmp_path: Path) -> None:
    """Later every machine would be refused instead, and pay for standing idle."""
    (tmp_path / "config.yaml").write_text(CONFIG, "utf-8")
    (tmp_path / "token").write_bytes(token)
    cli = typer.Typer()
    scripts.register(cli)
    arguments = ["--config", str(tmp_path / "config.yaml"), "--token-file", str(tmp_path / "token")]
    error = CliRunner().invoke(cli, arguments).exception
    assert isinstance(error, ConfigurationError)
    assert [(problem.path, problem.message) for problem in error.problems] == [("--token-file", words)]
