"""The adapter for Verda Cloud, and the only importer of its SDK."""

from app.cloud.verda.calls import CallReport, Observer, Outcome
from app.cloud.verda.cloud import DEFAULT_BASE_URL, VerdaCloud
from app.cloud.verda.outcome import INSUFFICIENT_SCOPE
from app.cloud.verda.transport import Limits

__all__ = ["DEFAULT_BASE_URL", "INSUFFICIENT_SCOPE", "CallReport", "Limits", "Observer", "Outcome", "VerdaCloud"]
