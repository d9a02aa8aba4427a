"""The command blocks of the documentation, and a place in which they can be run as a reader would.

A block says after its language what it is:

- `sh`: run as it stands, all blocks of a page one after the other in one shell; `make` says what it would do;
- `sh serves`: the same, and it does not end: started, waited for, stopped when another server comes or the page ends;
- `sh cluster`: run with stand-ins for the programs that reach a cluster or a registry, which look at what they get.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.cli.ports import free_port
from tests.e2e.harness import clean_environment

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

_KUBECTL = """\
# Stands in for kubectl: what can be looked at without a cluster is, commands in the pod run here, the rest is known.
namespace=
while [ $# -gt 0 ]; do
  case "$1" in --namespace) shift 2 ;; --namespace=*) shift ;; *) break ;; esac
done
verb="$1"; shift
case "$verb" in
  apply|delete)
    case "$1" in
      --kustomize) test -f "$2/kustomization.yaml" || { echo "no kustomization in $2" >&2; exit 64; }
        if [ -n "$REAL_KUBECTL" ]; then "$REAL_KUBECTL" kustomize "$2" > /dev/null; fi ;;
      --filename) python -c 'import sys, yaml; list(yaml.safe_load_all(open(sys.argv[1])))' "$2" ;;
      pod|pod/*) ;;
      *) echo "unknown: kubectl $verb $*" >&2; exit 64 ;;
    esac ;;
  create)
    if [ -n "$REAL_KUBECTL" ]; then "$REAL_KUBECTL" create "$@" --dry-run=client --output name; fi ;;
  exec)
    while [ "$1" != -- ]; do shift; done; shift
    if [ "$2" = doctor ]; then
      "$1" "$2" --help > /dev/null
    elif [ "$1" = verda-cloud-provider ]; then
      database=$(ls var/*.db | head -1)
      for argument; do shift; set -- "$@" "${argument/#\\/data\\/provider.db/$database}"; done
      "$@"
    fi ;;
  cp|get|describe|logs|rollout|scale|wait) ;;
  *) echo "unknown: kubectl $verb $*" >&2; exit 64 ;;
esac
"""
_HELM = """\
# Stands in for helm: a chart of this checkout is rendered with its values, others are known.
case "$1" in
  repo) test "$2" = add ;;
  upgrade)
    test "$2" = --install || exit 64
    case "$4" in
      deploy/*) python - "$4" "$8" <<'EOF'
import sys, helm_python, yaml
with helm_python.Chart.load(sys.argv[1]) as chart:
    chart.render(yaml.safe_load(open(sys.argv[2])), name="verda-cloud-provider", namespace="kube-system")
EOF
        ;;
      nvidia/gpu-operator) ;;
      *) exit 64 ;;
    esac ;;
  *) exit 64 ;;
esac
"""
_MAKE = """\
# Stands in for make: the target has to be there, and its recipe is printed.
exec "$REAL_MAKE" --dry-run --always-make "$@"
"""
_DOCKER = """\
# Stands in for docker.
test "$1" = push
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: what stands behind the fence, its text, and the line it begins at."""

    info: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Every fenced block of a page."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        yield Block(info=found["info"].strip(), text=found["text"], line=text.count("\n", 0, found.start()) + 2)


class Desk:
    """A directory that looks like the checkout, with ports of its own; the shell that reads the blocks works in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._ports = {port: str(free_port()) for port in ("8086", "8087", "8090")}
        tools = directory / "tools"
        tools.mkdir()
        for name, text in (("kubectl", _KUBECTL), ("helm", _HELM), ("make", _MAKE), ("docker", _DOCKER)):
            (tools / name).write_text(f"#!/usr/bin/env bash\nset -euo pipefail\n{text}")
            (tools / name).chmod(0o755)
        (directory / ".venv").symlink_to(sys.prefix)
        (directory / "deploy").symlink_to(ROOT / "deploy")
        for name in ("Makefile", "pyproject.toml", "requirements-dev.lock"):
            (directory / name).symlink_to(ROOT / name)
        (directory / "credentials").mkdir()
        (directory / "examples").mkdir()
        for name in ("config.yaml", "scale.py"):
            (directory / "examples" / name).write_text(self.own(ROOT / "examples" / name))
        (directory / "config.yaml").write_text(self.own(ROOT / "examples" / "config.yaml"))
        self.environment = clean_environment() | {
            "PATH": f"{tools}:{Path(sys.executable).parent}:{clean_environment()['PATH']}",
            "PYTHONPATH": str(ROOT),
            "REAL_KUBECTL": shutil.which("kubectl") or "",
            "REAL_MAKE": shutil.which("make") or "",
            "TERM": "dumb",
        }

    def own(self, source: Path | str) -> str:
        """A text or a file's text with this desk's ports."""
        text = source.read_text() if isinstance(source, Path) else source
        for port, mine in self._ports.items():
            text = re.sub(rf"(?<=[: ]){port}\b", mine, text)
        return text

    def run(self, texts: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run texts one after the other in one shell that ends at the first failure; every command is in the output."""
        script = "set -euo pipefail\n" + "\n".join(self.own(text) for text in texts)
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=timeout_s,
        )
