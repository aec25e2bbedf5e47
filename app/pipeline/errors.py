"""What a user of the pipeline can put right: told in one line, with exit code 2, and nothing was changed."""


class PipelineError(Exception):
    """A lake that is none, an unreadable file, a wrong mapping, a database of another version, a bad condition."""
