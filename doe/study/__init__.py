"""The study: its values, its TOML form, its checks, and the presets that packages offer."""
