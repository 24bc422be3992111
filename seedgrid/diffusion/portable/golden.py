GOLDEN: dict[str, str] = {}
