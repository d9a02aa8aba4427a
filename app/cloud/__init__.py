"""What we need from a cloud (`port`) and the adapters that deliver it."""
