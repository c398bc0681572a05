"""Engines start workers somewhere; the run directory decides what became of them."""
