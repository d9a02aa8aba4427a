"""When certificates end, so that somebody renews them before nobody gets in any more."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from cryptography import x509


def expiries(files: Mapping[str, Path]) -> Mapping[str, datetime]:
    """For each of these PEM files when its first certificate ends, without those that cannot be read at the moment.

    Files are swapped while they are in use; what is wrong with them for good is said by those who need them.
    """
    ends: dict[str, datetime] = {}
    for name, path in files.items():
        try:
            certificates = x509.load_pem_x509_certificates(path.read_bytes())
        except (OSError, ValueError):
            continue
        ends[name] = min(certificate.not_valid_after_utc for certificate in certificates)
    return ends
