"""What the names of methods mean, for readers who meet them in a report."""

METHODS = {
    "t": "Student's t on the problems' differences",
    "bonett_price": "Bonett-Price: one more win and one more loss are counted",
    "constant": "all differences are alike: the interval is what could be there unseen",
    "clustered_t": "Student's t on clusters of problems that belong together",
    "clustered_bonett_price": "Bonett-Price on clusters: one more cluster won and one more lost are counted",
    "clustered_constant": "all clusters are alike: the interval is what could be there unseen",
    "exact McNemar": "exact McNemar: are lost problems as likely as won ones",
}


def method_words(method: str) -> str:
    """The method's name with what it does; a name that is not known stays as it is."""
    if method.startswith("sign flips of whole"):
        return f"{method}: were the sides alike, every difference could as well have the other sign"
    return METHODS.get(method, method)
