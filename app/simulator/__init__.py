"""A seeded model of Verda: a world, an HTTP face for the real SDK, and an in-process cloud for tests."""
