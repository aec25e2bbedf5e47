"""What a user of the pipeline is told in one line."""


class PipelineError(Exception):
    """What a user can put right: exit code 2, and nothing was changed.

    A lake that is none, an unreadable file, a wrong mapping, a database of another version, a bad condition.
    """


class PipelineStopped(Exception):
    """What had begun and could not go on, through no fault of what was asked. Exit code 1: a later run goes on."""
