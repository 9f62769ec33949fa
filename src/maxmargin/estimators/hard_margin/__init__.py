"""The hard margin: HardMarginSVC."""
