"""The studies that this package offers to `doe plan --preset`, a TOML file each."""
