"""The load generator: a compiled client, or a slower one where there is no compiler."""

from bench.load.generator import Generator, Load, Plan, build_generator

__all__ = ["Generator", "Load", "Plan", "build_generator"]
