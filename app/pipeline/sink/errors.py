"""What ends a job that has begun: what was accepted stays, and the same job can be run again."""


class DeliveryError(Exception):
    """The service could not be reached for too long, or answers as no LeaseMQ does."""


class RowsRefused(Exception):
    """The service took every row but these."""
