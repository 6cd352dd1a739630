"""Histories and what runs them: steps, how they are invented, the engine driven by them, and its answers compared with the reference."""
