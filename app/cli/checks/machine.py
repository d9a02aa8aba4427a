"""What can be looked at without the cloud: files, certificates, the disk, the clock."""

import email.utils
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from app.certificates import expiry_of
from app.cli.checks.finding import Finding, fine, unknown, warning, wrong
from app.config.model import Config
from app.domain.words import span
from app.store.mounts import network_filesystem
from app.store.sqlite import FIXED_SQLITE, driver, sqlite_version
from app.website import certificate_files

_SOON = timedelta(days=21)
_LITTLE_SPACE = 500_000_000
_SKEW = timedelta(seconds=30)
_PATIENCE_S = 10.0


def tls(config: Config, now: datetime) -> Iterator[Finding]:
    """Every certificate file: there, readable, in date."""
    if config.tls is None:
        where = "on loopback" if config.listen.is_loopback() else "beyond loopback, as `insecure: true` says"
        remedy = "add a `tls` section; `certs` makes the files"
        yield fine("tls", f"plain text {where}") if config.listen.is_loopback() else warning("tls", where, remedy)
    for name, path in certificate_files(config).items():
        yield _certificate(name, path, now)


def _certificate(name: str, path: Path, now: datetime) -> Finding:
    try:
        ends = expiry_of(path)
    except OSError as error:
        return wrong(name, f"cannot read {path}: {error.strerror}", "mount the file, or correct its path")
    except ValueError:
        return wrong(name, f"{path} holds no PEM certificate", "put the certificate there, not its key and not DER")
    if ends <= now:
        return wrong(name, f"{path} ended {span(now - ends)} ago", "renew it; it is read again without a restart")
    if ends - now < _SOON:
        return warning(name, f"{path} ends in {span(ends - now)}", "renew it; it is read again without a restart")
    return fine(name, f"{path} is good for {span(ends - now)}")


def volume(config: Config) -> Iterator[Finding]:
    """The database's directory: there, writable, local, with room; and the SQLite that will write it."""
    directory = config.database.parent.absolute()
    if not directory.is_dir():
        yield warning(
            "volume", f"there is no {directory} yet", "`serve` makes it; mount a volume there to keep the log"
        )
        return
    kind = network_filesystem(directory)
    if kind is not None and kind not in config.database_network_filesystems:
        remedy = f"use a block volume, or answer for it with database_network_filesystems: [{kind}]"
        yield wrong("volume", f"{directory} is on a network file system ({kind}), whose locks can lie", remedy)
    elif not os.access(directory, os.W_OK):
        remedy = f"let uid {os.getuid()} write it (fsGroup in a pod)"
        yield wrong("volume", f"uid {os.getuid()} may not write {directory}", remedy)
    elif (free := shutil.disk_usage(directory).free) < _LITTLE_SPACE:
        remedy = "make room: a full disk stops growth until it can be written again"
        yield warning("volume", f"{free // 1_000_000} MB are free at {directory}", remedy)
    else:
        yield fine("volume", f"{directory} is local, writable, {free // 1_000_000_000} GB free")
    if driver().sqlite_version_info < FIXED_SQLITE:
        needed = ".".join(map(str, FIXED_SQLITE))
        yield warning("sqlite", f"SQLite {sqlite_version()} is older than {needed}", "install the pysqlite3 wheel")
    else:
        yield fine("sqlite", f"SQLite {sqlite_version()}")


def clock(config: Config, now: datetime) -> Iterator[Finding]:
    """Our clock beside that of the cloud's own answers: tokens and certificates live by it."""
    try:
        with urllib.request.urlopen(config.verda.base_url, timeout=_PATIENCE_S) as answer:  # noqa: S310 - http or https
            date = answer.headers.get("Date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("Date")
    except (OSError, ValueError) as error:
        remedy = "see whether this machine may reach it: DNS, proxy, network policy"
        yield unknown("clock", f"{config.verda.base_url} does not answer: {error}", remedy)
        return
    theirs = email.utils.parsedate_to_datetime(date) if date else None
    if theirs is None:
        yield unknown("clock", "the API's answer has no date", "compare with `chronyc tracking` or `timedatectl`")
        return
    off = abs(now - theirs)
    if off > _SKEW:
        yield wrong(
            "clock", f"this machine is {span(off)} off the API's clock", "let chrony or systemd-timesyncd set it"
        )
    else:
        yield fine("clock", "agrees with the API's")
