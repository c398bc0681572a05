"""What is asked: the study, its file form, its checks, the presets that packages offer."""
