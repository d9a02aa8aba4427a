"""Where the process's own gauges come from: rooms that do not know each other, put together for one page."""

from collections.abc import Mapping
from pathlib import Path

from app.cloud.verda.cloud import VerdaCloud
from app.config.model import Config
from app.rpc.expiry import expiries
from app.store.space import file_sizes, free_bytes
from app.web.process_metrics import Disk, Sources, Traffic


def sources_of(config: Config, cloud: VerdaCloud) -> Sources:
    """The API's budget, the database's disk and the certificates, each as it is when asked."""
    certificates = certificate_files(config)
    return Sources(
        traffic=lambda: Traffic(
            requests_left=cloud.limiter.left(), hold_s=cloud.limiter.held_s(), circuit_open=cloud.circuit_open
        ),
        disk=lambda: Disk(files=file_sizes(config.database), free_bytes=free_bytes(config.database)),
        certificates=lambda: expiries(certificates),
    )


def certificate_files(config: Config) -> Mapping[str, Path]:
    """The certificates that people must renew, by the key that names them."""
    files: dict[str, Path] = {}
    if config.tls is not None:
        files |= {"tls.cert": config.tls.cert, "tls.client_ca": config.tls.client_ca}
    if config.expander is not None:
        files["expander.cert"] = config.expander.cert
    return files
