"""Play Cluster Autoscaler by hand against a running provider.

python examples/scale.py show
python examples/scale.py up gpu-workers 3
python examples/scale.py down gpu-workers verda://gpu-workers-x2k7q4mz
python examples/scale.py --address localhost:8086 --certs certs show      # with the files of `certs`
"""

import argparse
import sys
from pathlib import Path

from app.rpc.client import CallFailed, Client, ClientFiles

STATES = {1: "Running", 2: "Creating", 3: "Deleting"}


def show(client: Client) -> None:
    """Every group with its target size and instances."""
    for group in client.node_groups():
        print(f"{group.id}: target size {client.target_size(group.id)}, {group.minSize} to {group.maxSize}")
        for instance in client.instances(group.id):
            error = instance.status.errorInfo
            words = f"  {error.errorCode}: {error.errorMessage}" if error.errorCode else ""
            print(f"  {instance.id}  {STATES[instance.status.instanceState]}{words}")


def main() -> None:
    """Parse, call, show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="127.0.0.1:8086", help="the provider's gRPC address")
    parser.add_argument("--certs", type=Path, help="directory with client.crt, client.key and ca.crt: mutual TLS")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("show")
    up = verbs.add_parser("up")
    up.add_argument("node_group")
    up.add_argument("delta", type=int)
    down = verbs.add_parser("down")
    down.add_argument("node_group")
    down.add_argument("instances", nargs="+")
    arguments = parser.parse_args()
    where: Path | None = arguments.certs
    files = None
    if where is not None:
        files = ClientFiles(cert=where / "client.crt", key=where / "client.key", cacert=where / "ca.crt")
    try:
        with Client(arguments.address, files=files) as client:
            if arguments.verb == "up":
                client.increase_size(arguments.node_group, arguments.delta)
            elif arguments.verb == "down":
                client.delete_nodes(arguments.node_group, arguments.instances)
            show(client)
    except CallFailed as failure:
        sys.exit(failure.message)


if __name__ == "__main__":
    main()
