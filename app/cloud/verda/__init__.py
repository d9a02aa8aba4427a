"""The only importer of the Verda SDK."""
