"""Names and numbers as the page writes them."""


def named(name: str, unit: str) -> str:
    """`p [Pa]`."""
    return f"{name} [{unit}]" if unit else name


def short(value: float, digits: int = 4) -> str:
    """`1.234`, `5.6e-7`: as few signs as the digits need."""
    mantissa, mark, power = f"{value:.{digits}g}".partition("e")
    return f"{mantissa}e{int(power)}" if mark else mantissa
