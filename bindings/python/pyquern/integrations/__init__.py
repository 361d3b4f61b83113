"""Trainers that others wrote, on a store: lightning, transformers, accelerate. Each module needs the package of its name."""
