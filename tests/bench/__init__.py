"""The benchmarks themselves: they run, and no figure is missed grossly."""
