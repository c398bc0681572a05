"""From runs to what a view needs, as plain values."""
