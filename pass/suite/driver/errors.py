class SuiteError(Exception):
    """What the user is told: the operation, the object, and the remedy."""
