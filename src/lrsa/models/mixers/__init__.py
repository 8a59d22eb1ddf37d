"""The other global mixing layers, one file each (paper, section 3.3)."""
