"""Measurements for people; run one as `python -m bench.<name>` from a checkout."""
