"""The pages: metrics, health, the dashboard."""
